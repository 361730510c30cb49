"""Writes what was measured on the nodes, and what their pods ask for, into the nodes' annotations.

A pass looks at all nodes, asks the provider, and writes what differs, one patch for each node. What goes
wrong with one node, or with the provider, is told and does not keep the others from being written: values
that nobody renews have to be taken away.
"""

import asyncio
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import msgspec
import structlog

from longshore.api import Node
from longshore.errors import UserError
from longshore.kube.backoff import sleep_unless
from longshore.kube.caller import list_objects, patch
from longshore.kube.client import Client
from longshore.kube.kinds import NOT_ENDED
from longshore.kube.resources import NODES, PODS
from longshore.measure.node_annotations import GPUS, Wanted, allocation, asked_for, changes, load
from longshore.measure.providers import Provider, Values

log = structlog.get_logger()

# The API server has others to serve.
_PATCHES_AT_ONCE = 16
# Of the interval, so that annotators of several clusters do not ask one Prometheus in step. It is only ever
# made shorter: values may count for hardly longer.
_JITTER = 0.1
# Told to stop, a pass gets this long to end.
_STOP_SECONDS = 5.0


class Annotated(msgspec.Struct, frozen=True, omit_defaults=True):
    """What became of a node's annotations; `error` if it was not written."""

    name: str
    set: dict[str, str] = {}
    removed: tuple[str, ...] = ()
    error: str = ""


class Pass(msgspec.Struct, frozen=True, rename="camel"):
    """`nodes` are those that had to change; the times are in seconds."""

    nodes: tuple[Annotated, ...]
    unchanged: int
    # Nodes without any fresh measurement, if measurements were asked for.
    unmeasured: int
    began: float
    seconds: float
    dry_run: bool = False
    # Why the provider had nothing to say.
    problem: str = ""

    @property
    def failed(self) -> list[Annotated]:
        return [node for node in self.nodes if node.error]


def _nobody_looks(_done: int, _all: int) -> None:
    """Of a pass that nobody waits for."""


@dataclass(frozen=True, kw_only=True)
class Annotator:
    """`provider` is None if only what pods ask for is written; `selector` chooses nodes by their labels."""

    client: Client
    provider: Provider | None
    allocation: bool
    max_age: float
    selector: str = ""
    gpu_resource: str = GPUS
    dry_run: bool = False
    on_progress: Callable[[int, int], None] = _nobody_looks
    wall: Callable[[], float] = time.time

    async def once(self) -> Pass:
        """Raises UserError if the cluster cannot be looked at; all else is in the answer."""
        began = self.wall()
        chosen = {"labelSelector": self.selector} if self.selector else None
        nodes = await list_objects(self.client, NODES, selectors=chosen)
        asked: Mapping[str, Mapping[str, int]] = {}
        if self.allocation:
            pods = await list_objects(self.client, PODS, selectors={"fieldSelector": NOT_ENDED})
            # A large cluster has more pods than an event loop should wait for.
            asked = await asyncio.to_thread(asked_for, pods.values(), gpus=self.gpu_resource)
        values, problem = await self._measured(list(nodes.values()))
        now = self.wall()
        differing: dict[str, Wanted] = {}
        unmeasured = 0
        for name, node in nodes.items():
            wanted: dict[str, str | None] = {}
            if self.provider is not None:
                of_load = load(node, values, now=now, max_age=self.max_age)
                unmeasured += not any(of_load.values())
                wanted.update(of_load)
            if self.allocation:
                amounts = asked.get(name, {})
                wanted.update(
                    allocation(node, amounts, now=began, max_age=self.max_age, gpus=self.gpu_resource)
                )
            if found := changes(node, wanted):
                differing[name] = found
        written = await self._write(differing)
        return Pass(
            nodes=written,
            unchanged=len(nodes) - len(differing),
            unmeasured=unmeasured,
            began=began,
            seconds=self.wall() - began,
            dry_run=self.dry_run,
            problem=problem,
        )

    async def for_ever(
        self, stop: asyncio.Event, *, interval: float, on_pass: Callable[[Pass], None]
    ) -> None:
        """A pass after the other until told to stop, up to `interval` seconds from begin to begin."""
        while not stop.is_set():
            began = time.monotonic()
            done = await self._unless_stopped(stop)
            if done is not None:
                _tell(done)
                on_pass(done)
            pause = interval * random.uniform(1 - _JITTER, 1) - (time.monotonic() - began)
            await sleep_unless(stop, max(pause, 0.0))

    async def _unless_stopped(self, stop: asyncio.Event) -> Pass | None:
        """The pass, or None if it came to nothing: that is told, and the next one may do better."""
        work = asyncio.create_task(self.once())
        told = asyncio.create_task(stop.wait())
        await asyncio.wait([work, told], return_when=asyncio.FIRST_COMPLETED)
        told.cancel()
        await asyncio.wait([work], timeout=_STOP_SECONDS)
        if work.cancel():
            await asyncio.wait([work])
            log.warning("stopped before all nodes were annotated")
            return None
        try:
            return work.result()
        except UserError as error:
            log.error("no node was annotated", reason=str(error))  # noqa: TRY400 - one line tells it
            return None

    async def _measured(self, nodes: Sequence[Node]) -> tuple[Values, str]:
        if self.provider is None or not nodes:
            return {}, ""
        try:
            return await self.provider.measure(nodes), ""
        except UserError as error:
            return {}, str(error)
        except Exception as error:
            # Values that nobody renews have to be taken away, also if the answer is past all expectation.
            return {}, f"{type(error).__name__}: {error}"

    async def _write(self, differing: Mapping[str, Wanted]) -> tuple[Annotated, ...]:
        slots = asyncio.Semaphore(_PATCHES_AT_ONCE)
        done = 0

        async def one(name: str, wanted: Wanted) -> Annotated | None:
            nonlocal done
            error = ""
            async with slots:
                try:
                    body = {"metadata": {"annotations": wanted}}
                    if not await patch(self.client, NODES, body, name=name, dry_run=self.dry_run):
                        return None
                except UserError as refused:
                    error = str(refused)
                finally:
                    done += 1
                    self.on_progress(done, len(differing))
            return Annotated(
                name,
                set={key: text for key, text in wanted.items() if text is not None},
                removed=tuple(key for key, text in wanted.items() if text is None),
                error=error,
            )

        written = await asyncio.gather(*(one(name, wanted) for name, wanted in sorted(differing.items())))
        return tuple(node for node in written if node is not None)


def _tell(done: Pass) -> None:
    if done.problem:
        log.warning("no measurements", reason=done.problem)
    for node in done.failed:
        log.warning("node not annotated", node=node.name, reason=node.error)
    log.info(
        "annotated",
        changed=len(done.nodes) - len(done.failed),
        unchanged=done.unchanged,
        unmeasured=done.unmeasured,
        failed=len(done.failed),
        seconds=round(done.seconds, 2),
    )
