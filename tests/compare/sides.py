"""The two schedulers, each as a separate process on the same cluster.

Both have the same profiles. Those of kube-scheduler are named `kube-…`, ours `longshore-…`.
"""

import json
import os
import re
import signal
import ssl
import subprocess
import sys
import urllib.request
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from longshore.dev import ControlPlane
from longshore.dev.build import build
from longshore.dev.component import Component
from longshore.dev.ports import Port

_MANIFEST = Path(__file__).parents[2] / "deploy" / "scheduler.yaml"
_SCORED = re.compile(
    r'"Plugin scored node for pod" pod="([^"]+)" plugin="([^"]+)" node="([^"]+)" score=(-?\d+)'
)
# It does nothing in Longshore yet. In kube-scheduler it scores 0 for a pod without claims.
_NOT_OURS = "DynamicResources"

_SERVING = re.compile(r'"port":(\d+).*"event":"serving metrics"')
_SAMPLE = re.compile(r"^(scheduler_\w+_total)\{(.*)\} (\S+)$", re.MULTILINE)

# By name and labels.
Counts = Counter[tuple[str, str]]
Profiles = Mapping[str, Mapping[str, Any]]
Extenders = Sequence[Mapping[str, Any]]


def configuration(side: str, profiles: Profiles, extenders: Extenders = ()) -> dict[str, Any]:
    """Return kube-scheduler's configuration, with one thread, so that the order of nodes is deterministic."""
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "parallelism": 1,
        "percentageOfNodesToScore": 100,
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"qps": 5000, "burst": 5000},
        "profiles": [{"schedulerName": f"{side}-{name}", **said} for name, said in profiles.items()],
        "extenders": list(extenders),
    }


def _counts(url: str, tls: ssl.SSLContext | None = None) -> Counts:
    with urllib.request.urlopen(url, context=tls) as answer:  # noqa: S310 - a scheduler of ours
        text = answer.read().decode()
    return Counter({(name, labels): int(float(number)) for name, labels, number in _SAMPLE.findall(text)})


class KubeScheduler:
    """The real kube-scheduler. It logs the score of every plugin for every node."""

    side = "kube"

    def __init__(
        self, plane: ControlPlane, folder: Path, profiles: Profiles, *, extenders: Extenders = ()
    ) -> None:
        for role in ("system:kube-scheduler", "system:volume-scheduler"):
            kubeconfig = plane.service_account("kube-scheduler", namespace="kube-system", cluster_role=role)
        document = configuration(self.side, profiles, extenders)
        document["clientConnection"]["kubeconfig"] = str(kubeconfig)
        file = folder / "kube-scheduler.yaml"
        self._port = Port()
        file.write_text(json.dumps(document))
        self._process = Component(
            "kube-scheduler",
            build() / "kube-scheduler",
            [
                f"--config={file}",
                "--bind-address=127.0.0.1",
                f"--secure-port={self._port.number}",
                "--permit-port-sharing",
                f"--cert-dir={folder}",
                "--authentication-skip-lookup",
                "--authorization-always-allow-paths=/metrics",
                "-v=2",
                "--vmodule=schedule_one=10",
            ],
            folder=folder,
        )
        self._process.start()
        self._certificate = folder / "kube-scheduler.crt"
        self._read = 0
        self._scores: dict[str, dict[str, dict[str, int]]] = {}

    def scores(self, key: str) -> dict[str, dict[str, int]]:
        """Return the weighted scores for the pod, by node and plugin. Empty if only one node fits."""
        with self._process.log.open() as log:
            log.seek(self._read)
            for pod, plugin, node, score in _SCORED.findall(log.read()):
                if plugin != _NOT_OURS:
                    self._scores.setdefault(pod, {}).setdefault(node, {})[plugin] = int(score)
            self._read = log.tell()
        return self._scores.pop(key, {})

    def metrics(self) -> Counts:
        tls = ssl.create_default_context(cafile=str(self._certificate))
        return _counts(f"https://127.0.0.1:{self._port.number}/metrics", tls)

    def require_running(self) -> None:
        self._process.require_running()

    def stop(self) -> None:
        self._process.kill()
        self._port.release()


class Longshore:
    """`longshore run`, with the rights of its manifest."""

    side = "longshore"

    def __init__(
        self,
        plane: ControlPlane,
        folder: Path,
        profiles: Profiles,
        *arguments: str,
        extenders: Extenders = (),
    ) -> None:
        plane.kubectl("apply", "-f", str(_MANIFEST))
        kubeconfig = plane.service_account("longshore", namespace="kube-system")
        self.configuration = folder / "longshore.yaml"
        self.configuration.write_text(yaml.safe_dump(configuration(self.side, profiles, extenders)))
        self.log = folder / "longshore.log"
        command = ["run", "--kubeconfig", str(kubeconfig), "--config", str(self.configuration), "-v"]
        command += ["--metrics-port", "0", "--bind-address", "127.0.0.1"]
        with self.log.open("w") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "longshore", *command, *arguments],
                stdout=log,
                stderr=log,
                env=os.environ | {"KUBECONFIG": "/nonexistent"},
            )

    def metrics(self) -> Counts:
        [port] = _SERVING.findall(self.log.read_text())
        return _counts(f"http://127.0.0.1:{port}/metrics")

    def require_running(self) -> None:
        if self._process.poll() is not None:
            raise AssertionError(f"longshore run ended:\n{self.log.read_text()[-3000:]}")

    def stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(20)
        finally:
            self._process.kill()
            self._process.wait()
