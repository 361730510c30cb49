"""How the tests are shared out among the workers of pytest-xdist."""

from collections.abc import Sequence
from fnmatch import fnmatch
from typing import Any

import pytest

pytest_plugins = ["longshore.dev.fixtures"]

# Files that share a cluster with processes on it. One worker runs all of them, so that it is started once.
_TOGETHER = ("tests/compare/*", "tests/live/test_podsets*", "tests/live/test_extender*")
# Files whose tests start a cluster each: any worker may run any of them.
_ONE_BY_ONE = (
    "tests/bench/test_contests.py",
    "tests/deploy/test_switch.py",
    "tests/dev/test_own_cluster.py",
    "tests/live/test_failover.py",
    "tests/live/test_first_pods.py",
    "tests/live/test_preemption.py",
    "tests/live/test_serving.py",
    "tests/live/test_volumes.py",
    "tests/live/test_webhooks.py",
)


def _unit(nodeid: str) -> str:
    """Return the name that a test has in common with those that the same worker must run: mostly its file."""
    file = nodeid.partition("::")[0]
    if _matches(file, _ONE_BY_ONE):
        return nodeid
    return next((pattern for pattern in _TOGETHER if fnmatch(file, pattern)), file)


def _matches(file: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch(file, pattern) for pattern in patterns)


def _rank(item: pytest.Item) -> int:
    """Return when the test's unit begins: what takes long comes first, so that nothing else waits for it."""
    file = item.nodeid.partition("::")[0]
    if _matches(file, _TOGETHER):
        return 0
    return 1 if item.get_closest_marker("control_plane") else 2


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=_rank)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):  # type: ignore[misc]  # no types are published for it
        def _split_scope(self, nodeid: str) -> str:
            return _unit(nodeid)

    config.option.loadscopereorder = False  # the tests are in the right order
    return Scheduling(config, log)
