"""`longshore static` as its users run it: a process under a service account of deploy/static.yaml."""

import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from prometheus_client.parser import text_string_to_metric_families
from tests.live.pods import manifest, pods
from tests.waiting import eventually

from longshore.dev import ControlPlane
from longshore.pin.labels import pin_key

MANIFEST = Path(__file__).parents[2] / "deploy" / "static.yaml"
NAME = "test"
_COMMAND = (sys.executable, "-m", "longshore", "static")
# What a user's shell may have set.
_OURS = re.compile(r"KUBECONFIG|KUBERNETES_.*|SCHED_.*")


@dataclass
class Static:
    process: subprocess.Popen[str]
    log: Path

    @property
    def lines(self) -> list[str]:
        return self.log.read_text().splitlines()

    def wait_for_line(self, text: str, *, within: float = 20.0) -> str:
        """Return the first line of the log with this text, when there is one."""
        found = eventually(
            lambda: self.lines,
            lambda lines: any(text in line for line in lines),
            what=f"logged: {text}",
            within=within,
            pause=0.01,
        )
        return next(line for line in found if text in line)

    def stop(self, *, within: float = 5.0) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(within)

    @property
    def port(self) -> int:
        """The port for metrics, from the log."""
        return int(self.wait_for_line("serving metrics").split("port: ")[1].split(",")[0])

    def page(self, path: str = "/metrics") -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10) as answer:
            text: str = answer.read().decode()
            return text

    def counts(self, metric: str, **labels: str) -> float:
        """The sum of the series of this name with these labels."""
        return sum(value for found, value in self.series(metric) if labels.items() <= found.items())

    def series(self, metric: str) -> list[tuple[dict[str, str], float]]:
        return [
            (sample.labels, sample.value)
            for family in text_string_to_metric_families(self.page())
            for sample in family.samples
            if sample.name == metric
        ]


def environment(home: Path, variables: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a user who has set only these variables."""
    inherited = {name: value for name, value in os.environ.items() if not _OURS.fullmatch(name)}
    return inherited | {"HOME": str(home)} | dict(variables)


@contextmanager
def running(
    folder: Path, *arguments: str, kubeconfig: Path | None = None, **variables: str
) -> Iterator[Static]:
    """Run a daemon that logs every pod and uses a free port, unless the variables specify something else."""
    folder.mkdir(exist_ok=True)
    log = folder / f"static-{len(list(folder.glob('static-*')))}.log"
    given = {"SCHED_PROMETHEUS_PORT": "0"} | ({"KUBECONFIG": str(kubeconfig)} if kubeconfig else {})
    with log.open("w") as stderr:
        process = subprocess.Popen(
            [*_COMMAND, "--daemon", "-vv", *arguments],
            stderr=stderr,
            text=True,
            env=environment(folder, given | variables),
        )
    try:
        yield Static(process, log)
    finally:
        process.kill()
        process.wait()


def one_pass(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*_COMMAND, *arguments],
        capture_output=True,
        text=True,
        env=environment(folder, {"SCHED_PROMETHEUS_PORT": "0"} | variables),
        timeout=60,
        check=False,
    )


def install(plane: ControlPlane, text: str | None = None) -> Path:
    """Apply the manifest without the Deployment, and return a kubeconfig of its account."""
    documents = yaml.safe_load_all(text or MANIFEST.read_text())
    plane.apply(yaml.safe_dump_all(each for each in documents if each["kind"] != "Deployment"))
    return plane.service_account("longshore-static", namespace="longshore-static")


def label(plane: ControlPlane, node: str, *labels: str) -> None:
    """Change labels in the syntax of `kubectl label`: key=value, or key- to remove one."""
    plane.kubectl("label", "--overwrite", "node", node, *labels)


def key(namespace: str, pod: str) -> str:
    return pin_key(NAME, namespace, pod)


def pinned(name: str, **more: Any) -> dict[str, Any]:
    """A pod for the static scheduler."""
    return manifest(name, scheduler=NAME, **more)


def stateful_set(name: str, *, replicas: int) -> dict[str, Any]:
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "serviceName": name,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pinned(name)["spec"]},
        },
    }


def node_of(plane: ControlPlane, namespace: str, name: str) -> str:
    """Return the node of the pod, empty if it has none or does not exist."""
    found: str = pods(plane, namespace).get(name, {}).get("spec", {}).get("nodeName", "")
    return found
