"""Fixtures that run the schedulers as users do: as processes with the service account of their manifest."""

import asyncio
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
import uvloop
from tests.live import stock
from tests.live.pod_sets import World, install_kinds, world
from tests.live.processes import Running
from tests.live.processes import running as podset_process
from tests.live.static import NAME, Static, install, running

from longshore.dev import ControlPlane

_RUN = (sys.executable, "-m", "longshore", "run", "-v", "--metrics-port=0", "--bind-address=127.0.0.1")
MANIFEST = Path(__file__).parents[2] / "deploy" / "scheduler.yaml"
_TRIGGERS = MANIFEST.with_name("triggers.yaml")


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"uvloop": uvloop.new_event_loop}


@dataclass
class Scheduler:
    process: subprocess.Popen[str]
    log: Path
    # An API server that has just started refuses everyone until it knows the roles.
    may_be_refused: bool = False

    def stop(self, *, within: float = 20.0) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(within)


StartScheduler = Callable[..., Scheduler]


@pytest.fixture
def start_scheduler(tmp_path: Path) -> Iterator[StartScheduler]:
    """Start `longshore run` on a cluster. Processes that still run at the end of the test are killed."""
    started: list[Scheduler] = []

    def start(plane: ControlPlane, *arguments: str) -> Scheduler:
        plane.kubectl("apply", "-f", str(MANIFEST), "-f", str(_TRIGGERS))
        kubeconfig = plane.service_account("longshore", namespace="kube-system")
        log = tmp_path / f"scheduler-{len(started)}.log"
        with log.open("w") as stderr:
            process = subprocess.Popen(
                [*_RUN, "--kubeconfig", str(kubeconfig), *arguments],
                stderr=stderr,
                text=True,
                env=os.environ | {"KUBECONFIG": "/nonexistent"},
            )
        scheduler = Scheduler(process, log)
        started.append(scheduler)
        return scheduler

    yield start
    for scheduler in started:
        scheduler.process.kill()
        scheduler.process.wait()
    for scheduler in started:
        # The manifest gives it all the rights that it needs.
        assert scheduler.may_be_refused or "is forbidden" not in scheduler.log.read_text()


@pytest.fixture(scope="module")
def nodes(control_plane: ControlPlane) -> Iterator[list[str]]:
    """Three nodes of 8 cores in the shared cluster that the tests of this module may label and break."""
    made = control_plane.add_nodes(3, prefix="pinned-", pods="1000")
    yield made
    control_plane.kubectl("delete", "node", *made)


@pytest.fixture(scope="module")
def static(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Static]:
    """`longshore static` on the shared cluster, for pods with the schedulerName `test`."""
    kubeconfig = install(control_plane)
    with running(tmp_path_factory.mktemp("static"), "--name", NAME, kubeconfig=kubeconfig) as scheduler:
        scheduler.wait_for_line("ready")
        yield scheduler
        assert scheduler.stop() == 0
        # The manifest gives it all the rights that it can make use of.
        told = scheduler.log.read_text()
        assert "no right" not in told
        assert "is forbidden" not in told


@pytest.fixture(scope="session")
def stock_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[stock.World]:
    """A cluster without nodes for stock kube-schedulers with extenders. Each module adds its own nodes."""
    with ControlPlane.start(nodes=0, kwok=False, controller_manager=False) as plane:
        made = stock.World(plane, tmp_path_factory.mktemp("stock"))
        yield made
        made.api.close()


@pytest.fixture(scope="session")
def sets_plane() -> Iterator[ControlPlane]:
    """A cluster without nodes for tests of pod sets, because a planner plans for a whole cluster."""
    with ControlPlane.start(nodes=0) as plane:
        install_kinds(plane)
        yield plane


@pytest.fixture(scope="module")
def sets_scheduler(sets_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """`longshore run` on that cluster, for all tests of a module."""
    with podset_process(sets_plane, tmp_path_factory.mktemp("scheduler"), "run") as scheduler:
        scheduler.wait_for("ready")
        yield scheduler
        assert scheduler.process.poll() is None, scheduler.log.read_text()


@pytest.fixture
def sets_namespace(sets_plane: ControlPlane) -> Iterator[str]:
    name = f"sets-{secrets.token_hex(4)}"
    sets_plane.create_namespace(name)
    yield name
    sets_plane.delete_namespace(name)


@pytest.fixture
async def here(
    sets_plane: ControlPlane, sets_scheduler: Running, sets_namespace: str
) -> AsyncIterator[World]:
    """A new namespace, and three nodes of four cores that only its pods use."""
    async with world(sets_plane, sets_namespace) as made:
        yield made
