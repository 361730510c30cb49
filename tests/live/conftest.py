"""The scheduler as its users run it: a process of its own, under the service account of its manifest."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
import uvloop

from longshore.dev import ControlPlane

_RUN = (sys.executable, "-m", "longshore", "run", "-v", "--metrics-port=0", "--bind-address=127.0.0.1")
MANIFEST = Path(__file__).parents[2] / "deploy" / "scheduler.yaml"


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
    """Starts `longshore run` on a cluster; whatever still runs at the end of the test is killed."""
    started: list[Scheduler] = []

    def start(plane: ControlPlane, *arguments: str) -> Scheduler:
        plane.kubectl("apply", "-f", str(MANIFEST))
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
