"""The processes that handle pod sets on a real control plane, each with the account of its manifest."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from tests.waiting import eventually

from longshore.dev import ControlPlane

DEPLOY = Path(__file__).parents[2] / "deploy"


@dataclass
class Running:
    process: subprocess.Popen[str]
    log: Path

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The lines of its log, decoded."""
        found = []
        for line in self.log.read_text().splitlines():
            with contextlib.suppress(json.JSONDecodeError):
                found.append(json.loads(line))
        return found

    def told(self, event: str) -> list[dict[str, Any]]:
        return [line for line in self.lines if event in line.get("event", "")]

    def wait_for(self, event: str, *, within: float = 30.0) -> dict[str, Any]:
        eventually(
            lambda: (self.lines, self.process.poll()),
            lambda _found: self.told(event) or self.process.poll() is not None,
            what=f"logged: {event}",
            within=within,
            pause=0.02,
        )
        assert self.told(event), self.log.read_text()
        return self.told(event)[0]

    def ask(self, path: str) -> tuple[int, str]:
        """Return the status and the body of an answer from the port for metrics."""
        port = self.wait_for("serving metrics")["port"]
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def crash(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self, *, within: float = 20.0) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(within)


# The account of each process, and the manifests that give it its rights.
ACCOUNTS = {
    "run": ("longshore", "kube-system", "scheduler.yaml", "triggers.yaml"),
    "controller": ("longshore-controller", "planner-system", "controller.yaml"),
    "planner": ("podset-planner", "planner-system", "planner.yaml"),
}
# The arguments of a test come after these.
_ARGUMENTS = {
    # Without a lease, no process waits for the lease of a crashed one to expire.
    "run": ("-v", "--metrics-port=0", "--bind-address=127.0.0.1", "--no-leader-elect"),
    "controller": ("-v", "--metrics-port=0", "--no-leader-elect"),
    "planner": ("--listen=127.0.0.1:0", "--metrics-port=0"),
}


def account(plane: ControlPlane, command: str) -> Path:
    """A kubeconfig with the rights that the manifests give to this process."""
    name, namespace, *files = ACCOUNTS[command]
    documents = [each for file in files for each in yaml.safe_load_all((DEPLOY / file).read_text())]
    plane.apply(yaml.safe_dump_all(each for each in documents if each["kind"] != "Deployment"))
    return plane.service_account(name, namespace=namespace)


def account_without_triggers(plane: ControlPlane) -> Path:
    """Return the kubeconfig of an account for `longshore run --controllers none`, which fires no triggers."""
    account(plane, "run")
    return plane.service_account("longshore-apart", namespace="kube-system", cluster_role="longshore")


@contextmanager
def running(
    plane: ControlPlane,
    folder: Path,
    command: str,
    *arguments: str,
    kubeconfig: Path | None = None,
    may_be_refused: bool = False,
) -> Iterator[Running]:
    """Run `longshore COMMAND` with its own account, and kill it at the end if it still runs."""
    log = folder / f"{command}-{len(list(folder.glob('*.log')))}.log"
    connect = ("--kubeconfig", str(kubeconfig or account(plane, command)))
    with log.open("w") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-m", "longshore", command, *_ARGUMENTS[command], *connect, *arguments],
            stderr=stderr,
            text=True,
            env=os.environ | {"KUBECONFIG": "/nonexistent"},
        )
    started = Running(process, log)
    try:
        yield started
    finally:
        started.crash()
    # The manifest has all the rights that it needs.
    assert may_be_refused or "is forbidden: User" not in log.read_text()
