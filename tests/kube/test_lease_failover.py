"""Two real processes and the real API server: who leads when one of them stops, dies, or is suspended."""

import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from longshore.dev import ControlPlane
from longshore.dev.fixtures import Repetitions
from longshore.kube.lease import boot_time

SCRIPT = Path(__file__).with_name("lease_member.py")
# What the project promises.
CLEAN_FAILOVER = 3.0
CRASH_FAILOVER = 18.0
# The promise is for a machine that is not overloaded, so the fastest of several counts.
PATIENCE = 30.0


class Member:
    """A process, and what it has printed so far."""

    def __init__(self, name: str, process: subprocess.Popen[bytes], told: Path) -> None:
        self.name = name
        self.process = process
        self._told = told

    def when(self, what: str, *, within: float) -> float:
        """Wait for the first line with this event, and return its time."""
        end = time.monotonic() + within
        while True:
            for line in self._told.read_text().splitlines(keepends=True):
                if line.startswith(f"{what} ") and line.endswith("\n"):
                    return float(line.split()[1])
            if time.monotonic() >= end:
                break
            time.sleep(0.01)
        pytest.fail(f'{self.name} did not say "{what}" within {within} s, only: {self._told.read_text()}')

    def said(self, what: str) -> bool:
        return f"{what} " in self._told.read_text()


class Group:
    """The candidates for one lease."""

    def __init__(self, control_plane: ControlPlane, namespace: str, *, lease: str, folder: Path) -> None:
        self._control_plane = control_plane
        self._place = [namespace, lease]
        self._folder = folder / lease
        self._folder.mkdir()
        self._members: list[Member] = []

    def join(self, name: str) -> Member:
        told = self._folder / name
        command = [sys.executable, str(SCRIPT), str(self._control_plane.kubeconfig), *self._place, name]
        with told.open("wb") as out:
            member = Member(name, subprocess.Popen(command, stdout=out), told)
        self._members.append(member)
        member.when("ready", within=30)
        return member

    def leader_and_standby(self) -> tuple[Member, Member]:
        leader = self.join("first")
        leader.when("acts", within=10)
        standby = self.join("second")
        time.sleep(random.uniform(2.0, 4.0))  # to hit their periods at any phase
        assert not standby.said("acts")
        return leader, standby

    @property
    def holder(self) -> str:
        return str(self._spec["holderIdentity"])

    @property
    def transitions(self) -> int:
        return int(self._spec["leaseTransitions"])

    @property
    def _spec(self) -> dict[str, Any]:
        namespace, name = self._place
        text = self._control_plane.kubectl("get", "lease", name, "-n", namespace, "-o", "json")
        spec: dict[str, Any] = json.loads(text)["spec"]
        return spec

    def end(self) -> None:
        for member in self._members:
            member.process.kill()
            member.process.wait()


@pytest.fixture
def groups(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> Iterator[Callable[[], Group]]:
    """Creates groups, each with its own lease."""
    made: list[Group] = []

    def make() -> Group:
        made.append(Group(control_plane, namespace, lease=f"lease-{len(made)}", folder=tmp_path))
        return made[-1]

    yield make
    for group in made:
        group.end()


def test_the_standby_leads_soon_after_a_clean_stop(
    groups: Callable[[], Group], repetitions: Repetitions
) -> None:
    took = []
    for _ in range(repetitions(full=10)):
        group = groups()
        leader, standby = group.leader_and_standby()
        stopped = boot_time()
        leader.process.terminate()
        begun = standby.when("acts", within=PATIENCE)
        took.append(begun - stopped)
        assert leader.process.wait(10) == 0
        assert leader.when("acted-last", within=0) < begun
        assert not leader.said("lost")
        assert group.holder == "second"
        assert group.transitions == 1
        standby.process.terminate()
        assert standby.process.wait(10) == 0
        assert group.holder == ""
    assert min(took) < CLEAN_FAILOVER


def test_the_standby_leads_after_the_leader_is_killed(
    groups: Callable[[], Group], repetitions: Repetitions
) -> None:
    for _ in range(repetitions(full=5, short=1)):
        group = groups()
        leader, standby = group.leader_and_standby()
        killed = boot_time()
        leader.process.kill()
        assert standby.when("acts", within=PATIENCE) - killed < CRASH_FAILOVER
        assert group.transitions == 1


def test_a_suspended_leader_does_not_act_when_it_continues(groups: Callable[[], Group]) -> None:
    group = groups()
    leader, standby = group.leader_and_standby()
    leader.process.send_signal(signal.SIGSTOP)
    begun = standby.when("acts", within=PATIENCE)
    leader.process.send_signal(signal.SIGCONT)
    leader.when("lost", within=20)
    assert leader.process.wait(10) == 0
    assert leader.when("acted-last", within=0) < begun
    assert group.holder == "second"  # the first one did not release the lease of the second one
