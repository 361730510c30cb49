"""Compares the engine with recorded answers of the real kube-scheduler.

A case is a cluster and a pending pod as plain Kubernetes objects, with the expected answer. The objects reach
the engine as events, the way a watch reports them. The pod is then both explained (what every plugin says
about every node) and scheduled (so that preemption shows in what the engine asks for).
"""

import gzip
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from longshore.api import Change, Namespace, Node, Pod, PodDisruptionBudget, Service
from longshore.api.meta import ApiObject
from longshore.cluster import PodInfo
from longshore.engine import Bind, Done, Engine, Evict, Gone, Notice, Request, SetCondition, Succeeded
from longshore.engine.answers.explanation import (
    NARROWED,
    Explanation,
    Rejected,
    agrees_with_decision,
    explain,
)
from longshore.errors import UserError
from longshore.framework.effects import Nominate

_SCHEDULER = "default-scheduler"


class Case(msgspec.Struct, frozen=True):
    id: str
    pod: Pod
    nodes: tuple[Node, ...] = ()
    pods: tuple[Pod, ...] = ()
    namespaces: tuple[Namespace, ...] = ()
    services: tuple[Service, ...] = ()
    pdbs: tuple[PodDisruptionBudget, ...] = ()

    @property
    def family(self) -> str:
        return self.id.rpartition("-")[0] or self.id

    @property
    def objects(self) -> Iterator[ApiObject]:
        """All objects except the pending pod."""
        yield from (*self.namespaces, *self.services, *self.pdbs, *self.nodes, *self.pods)


class RecordedRejection(msgspec.Struct, frozen=True):
    plugin: str = ""
    code: str = ""
    reasons: tuple[str, ...] | None = None


class Preemption(msgspec.Struct, frozen=True):
    nominated: str
    victims: tuple[str, ...] = ()


class Expected(msgspec.Struct, frozen=True, rename="camel"):
    """What kube-scheduler answered. Any of several possible outcomes of preemption is right."""

    id: str
    feasible: tuple[str, ...] | None = ()
    rejected: dict[str, RecordedRejection] | None = None
    pre_filter: RecordedRejection | None = None
    scores: dict[str, dict[str, int]] | None = None
    totals: dict[str, int] | None = None
    preemption: tuple[Preemption, ...] | None = None


class Difference(msgspec.Struct, frozen=True):
    """An answer that differs from the expected one."""

    what: str
    expected: Any
    actual: Any


class Subject:
    """An engine under examination. It may be used for many cases, each made from the last one by events."""

    def __init__(self) -> None:
        self._engine = Engine(scheduler_name=_SCHEDULER, tie_break="first")
        self._present: dict[tuple[type, str], ApiObject] = {}
        self._now = 0.0

    def differences(self, case: Case, expected: Expected) -> list[Difference]:
        self._become({(type(item), item.key): item for item in case.objects})
        pod = case.pod
        info = PodInfo.of(pod)
        chooser = self._engine.chooser(_SCHEDULER)
        explanation = explain(chooser, info)
        found = _compared(expected, explanation)
        if not explanation.error and (quick := agrees_with_decision(chooser, info, explanation)):
            found.append(Difference("the decision itself", "the same", quick))
        found += self._schedule(pod, expected)
        return found

    def _become(self, wanted: dict[tuple[type, str], ApiObject]) -> None:
        for key, old in list(self._present.items()):
            if key not in wanted:
                self._tell(old, None)
        for key, new in wanted.items():
            was = self._present.get(key)
            if was != new:
                self._tell(was, new)
        self._present = wanted

    def _tell(self, old: ApiObject | None, new: ApiObject | None) -> None:
        self._engine.receive(Change(old, new), now=self._now)

    def _schedule(self, pod: Pod, expected: Expected) -> list[Difference]:
        """Let the engine try the pod, and compare what it asks for."""
        self._now += 1.0
        self._tell(None, pod)
        nominated, bound = "", ""
        victims: list[str] = []
        answers: list[Done] = []
        for instruction in self._engine.advance(now=self._now):
            match instruction:
                case Request(number, Bind(node=node)):
                    bound = node
                    answers.append(Done(number, Gone()))
                case Request(number, Evict(name=name)):
                    victims.append(name)
                    answers.append(Done(number, Succeeded()))
                case Notice(SetCondition(nominated_node=str() as node) | Nominate(node=node)):
                    nominated = node or nominated
        self._tell(pod, None)
        for answer in answers:
            self._engine.receive(answer, now=self._now)
        self._engine.advance(now=self._now)
        found = []
        if bool(bound) != bool(expected.feasible) or (bound and bound not in (expected.feasible or ())):
            found.append(Difference("bound to", expected.feasible, bound))
        elif bound and expected.totals and expected.totals[bound] != max(expected.totals.values()):
            found.append(Difference("bound to a best node", expected.totals, bound))
        outcome = Preemption(nominated, tuple(sorted(victims))) if nominated else None
        possible = [Preemption(p.nominated, tuple(sorted(p.victims))) for p in expected.preemption or ()]
        if (outcome not in possible) if possible else outcome is not None:
            found.append(Difference("preemption", possible or None, outcome))
        return found


def _compared(expected: Expected, actual: Explanation) -> list[Difference]:
    if actual.error:
        return [Difference("no error", "", actual.error)]
    found = []

    def compare(what: str, wanted: object, seen: object) -> None:
        if wanted != seen:
            found.append(Difference(what, wanted, seen))

    refusal = None if actual.pre_filter is None else _plain(actual.pre_filter)
    compare("preFilter", expected.pre_filter, refusal)
    if expected.pre_filter is not None:
        return found
    compare("feasible", tuple(sorted(expected.feasible or ())), actual.feasible)
    wanted, seen = expected.rejected or {}, actual.rejected
    for node in sorted({*wanted, *seen}):
        mine = seen.get(node)
        compare(f"rejected {node}", wanted.get(node), None if mine is None else _plain(mine))
    compare("scores", expected.scores or {}, actual.scores)
    compare("totals", expected.totals or {}, actual.totals)
    return found


def _plain(rejected: Rejected) -> RecordedRejection:
    if rejected.code == NARROWED:
        return RecordedRejection("", NARROWED, None)
    return RecordedRejection(rejected.plugin, rejected.code, rejected.reasons)


def read_cases(path: str | Path) -> list[Case]:
    return list(_lines(Path(path), Case))


def read_expected(path: str | Path) -> list[Expected]:
    return list(_lines(Path(path), Expected))


def _lines(path: Path, kind: type[Any]) -> Iterator[Any]:
    decoder = msgspec.json.Decoder(kind)
    number = 0
    try:
        raw = path.read_bytes()
        text = gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
        for line in text.splitlines():
            number += 1
            if line.strip():
                yield decoder.decode(line)
    except msgspec.DecodeError as error:
        raise UserError(f"{path}: line {number}: {error}") from error
    except (OSError, EOFError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise UserError(f"{path}: cannot be read: {why}") from error


def examine(
    cases: Sequence[Case], expected: Sequence[Expected], *, shared: bool
) -> Iterator[tuple[Case, list[Difference]]]:
    """Yield each case with its differences. `shared`: use one engine for all cases of a family."""
    answers = {answer.id: answer for answer in expected}
    subjects: dict[str, Subject] = {}
    for case in cases:
        if case.id not in answers:
            raise UserError(f"case {case.id} has no expected answer")
        subject = subjects.setdefault(case.family, Subject()) if shared else Subject()
        yield case, subject.differences(case, answers[case.id])
