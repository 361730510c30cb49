"""Which tests run in the same worker of pytest-xdist: those that share a cluster or a process."""

import pytest

pytest_plugins = ["longshore.dev.fixtures"]

# Clusters and schedulers that take long to start, started once for all tests that use them.
_STARTED_ONCE = ("arena", "managed", "stock_cluster", "sets_plane")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("control_plane"):
            for group in _groups(item):
                item.add_marker(pytest.mark.xdist_group(group))


def _groups(item: pytest.Item) -> list[str]:
    """Return the name of the test's group, or none if it has a cluster of its own."""
    names = set(getattr(item, "fixturenames", ()))
    for shared in _STARTED_ONCE:
        if shared in names:
            return [shared]
    return [] if "own_cluster" in names else [item.nodeid.partition("::")[0]]
