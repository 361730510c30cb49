"""Health checks and their results, in the format of Kubernetes' own components."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

# Returns what is wrong, or an empty string. It runs in the server's thread, so it must only read.
Check = Callable[[], str]


@dataclass(frozen=True)
class Health:
    """The checks: a `live` one fails if a restart would help, a `ready` one if the process cannot work."""

    live: Mapping[str, Check]
    ready: Mapping[str, Check]


@dataclass(frozen=True)
class ProbeResult:
    """The result of a probe."""

    healthy: bool
    # A line for each check, as kube-scheduler writes them with `?verbose`.
    lines: tuple[str, ...]


def probe(checks: Mapping[str, Check]) -> ProbeResult:
    """Run the checks, after one named `ping` that always succeeds."""
    found = {"ping": "", **{name: check() for name, check in checks.items()}}
    lines = (f"[-]{name} failed: {wrong}" if wrong else f"[+]{name} ok" for name, wrong in found.items())
    return ProbeResult(not any(found.values()), tuple(lines))
