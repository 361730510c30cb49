"""pytest fixtures for tests on the real control plane, which is built at first use.

Enable them with `pytest_plugins = ["longshore.dev.fixtures"]`. A test that uses one of them gets the mark
`control_plane`, so that `-m "not control_plane"` runs only the others. The clusters belong to the test
process: they end with it, even if it is killed. With pytest-xdist, each worker has clusters of its own.
"""

import contextlib
import os
import secrets
from collections.abc import Iterator
from typing import Protocol

import pytest

from longshore.dev import ControlPlane
from longshore.dev.build import PROMETHEUS, build
from longshore.dev.prometheus import MonitoredNodes, monitored_nodes
from longshore.errors import UserError

_CUT_REPETITIONS = 3
_PROMETHEUS = "prometheus"
_REAL = {"control_plane", "namespace", "own_cluster", _PROMETHEUS}


class OwnCluster(Protocol):
    """A function that starts a cluster for one test. The arguments are those of `ControlPlane.start`."""

    def __call__(
        self, *, nodes: int = 3, scheduler: bool = False, kwok: bool = True, controller_manager: bool = True
    ) -> ControlPlane: ...


class Repetitions(Protocol):
    """A function that returns how often to repeat a check: `full` times in a long run, otherwise `short`."""

    def __call__(self, *, full: int, short: int = ...) -> int: ...


@pytest.fixture(scope="session")
def control_plane() -> Iterator[ControlPlane]:
    """The cluster that all tests of this process share, with KWOK, the controller manager and three nodes.

    Tests must not disturb each other. Use a `namespace`, give new nodes unique names, and stop no component.
    """
    with ControlPlane.start() as plane:
        yield plane


@pytest.fixture
def namespace(control_plane: ControlPlane) -> Iterator[str]:
    """The name of a new namespace in the shared cluster, which is deleted afterwards."""
    name = f"test-{secrets.token_hex(4)}"
    control_plane.create_namespace(name)
    yield name
    control_plane.delete_namespace(name)


@pytest.fixture
def own_cluster() -> Iterator[OwnCluster]:
    """Start clusters for this test only. The test may stop their components; they end with the test."""
    started: list[ControlPlane] = []

    def start(
        *, nodes: int = 3, scheduler: bool = False, kwok: bool = True, controller_manager: bool = True
    ) -> ControlPlane:
        plane = ControlPlane.start(
            nodes=nodes, scheduler=scheduler, kwok=kwok, controller_manager=controller_manager
        )
        started.append(plane)
        return plane

    yield start
    for plane in started:
        plane.stop()


@pytest.fixture(scope="session")
def prometheus() -> Iterator[MonitoredNodes]:
    """A real Prometheus that all tests of this process share. Give nodes unique names."""
    with monitored_nodes() as nodes:
        yield nodes


@pytest.fixture(scope="session")
def repetitions() -> Repetitions:
    """A function: `repetitions(full=20)` is 20 if LONGSHORE_LONG is 1 in the environment, otherwise 3."""
    long = os.environ.get("LONGSHORE_LONG") == "1"
    return lambda *, full, short=_CUT_REPETITIONS: full if long else min(full, short)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that need the real control plane, directly or by another fixture."""
    for item in items:
        if _REAL & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.control_plane)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> None:
    """Build before the first test, so that the minutes do not count against the time limit of a test."""
    if session.config.option.collectonly or not any(
        item.get_closest_marker("control_plane") for item in session.items
    ):
        return
    capture = session.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled() if capture else contextlib.nullcontext():
        try:
            build()
            if any(_PROMETHEUS in getattr(item, "fixturenames", ()) for item in session.items):
                build(bundle=PROMETHEUS)
        except UserError as error:
            pytest.exit(f"the control plane could not be built: {error}", returncode=1)
