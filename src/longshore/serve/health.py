"""Whether the process is well, check by check, in the words of Kubernetes' own components."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

# What is wrong, or nothing. Called from the thread that serves, so it must only look.
Check = Callable[[], str]


@dataclass(frozen=True)
class Health:
    """`live` checks tell whether a restart would help; `ready` ones whether the process can do its work."""

    live: Mapping[str, Check]
    ready: Mapping[str, Check]


@dataclass(frozen=True)
class Answer:
    """To a probe."""

    well: bool
    # One line for each check, as kube-scheduler writes them with `?verbose`.
    lines: tuple[str, ...]


def probe(checks: Mapping[str, Check]) -> Answer:
    found = {"ping": "", **{name: check() for name, check in checks.items()}}
    lines = (f"[-]{name} failed: {wrong}" if wrong else f"[+]{name} ok" for name, wrong in found.items())
    return Answer(not any(found.values()), tuple(lines))
