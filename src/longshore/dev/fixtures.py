"""pytest fixtures for tests with the real control plane, which is built on first use.

Enable them with `pytest_plugins = ["longshore.dev.fixtures"]`. A test that uses one of them is marked
`control_plane`, so `-m "not control_plane"` selects the fast tests. The clusters belong to the test process
and end with it, even if it is killed.
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
    """Starts a cluster for one test, with the arguments of `ControlPlane.start`."""

    def __call__(
        self, *, nodes: int = 3, scheduler: bool = False, kwok: bool = True, controller_manager: bool = True
    ) -> ControlPlane: ...


class Repetitions(Protocol):
    """Returns how often to repeat a test: `full` times in a long run, `short` times otherwise."""

    def __call__(self, *, full: int, short: int = ...) -> int: ...


@pytest.fixture(scope="session")
def control_plane() -> Iterator[ControlPlane]:
    """The cluster that all tests of this process share, with KWOK, controller manager, and three nodes.

    Tests must not disturb each other: use a `namespace`, add nodes with names of your own, and break nothing.
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
    """Starts clusters for this test alone, which it may break. They end with the test."""
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
    """A real Prometheus that all tests of this process share. Use nodes with names of your own."""
    with monitored_nodes() as nodes:
        yield nodes


@pytest.fixture(scope="session")
def repetitions() -> Repetitions:
    """`repetitions(full=20)` is 20 with LONGSHORE_LONG=1 in the environment, else 3."""
    long = os.environ.get("LONGSHORE_LONG") == "1"
    return lambda *, full, short=_CUT_REPETITIONS: full if long else min(full, short)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that need the real control plane, also if they request the fixture indirectly."""
    for item in items:
        if _REAL & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.control_plane)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> None:
    """Build before the first test, because building takes longer than the time limit of a test."""
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
