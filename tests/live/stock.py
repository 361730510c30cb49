"""Stock kube-schedulers with our extenders, on one cluster with nodes whose annotations have their load.

All nodes exist before the first process starts, so that every process knows them. A pod selects by affinity
which of them are in play. Every kube-scheduler has a name of its own and the entries of one test.
"""

import json
import os
import re
import secrets
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.compare.api import Api, Document, manifest, priority_classes, resource_of
from tests.waiting import eventually

from longshore.agents.annotations import MEASURED_AT
from longshore.agents.load import Missing
from longshore.api import Node, Pod
from longshore.dev import ControlPlane
from longshore.dev.build import build
from longshore.dev.component import Component
from longshore.dev.ports import Port
from longshore.testing import NodeBuilder, PodBuilder, node, pod

MANIFEST = Path(__file__).parents[2] / "deploy" / "extender" / "service-account.yaml"
ACCOUNT = "extender-serviceaccount"
HOSTNAME = "kubernetes.io/hostname"
GI = 2**30
_EXTENDER = re.compile(
    r'"Extender scored node for pod" pod="([^"]+)" extender="[^"]*" node="([^"]+)" score=(-?\d+)'
)
_PLUGIN = re.compile(
    r'"Plugin scored node for pod" pod="([^"]+)" plugin="([^"]+)" node="([^"]+)" score=(-?\d+)'
)
_FINAL = re.compile(r'"Calculated node\'s final score for pod" pod="([^"]+)" node="([^"]+)" score=(-?\d+)')


def loaded(
    name: str, cpu: tuple[int, int] | None = None, memory: tuple[float, float] | None = None
) -> NodeBuilder:
    """Return a node of 8 cores and 16 GiB, with mean and deviation of what is free in millicores and GiB."""
    said: dict[str, str] = {}
    if cpu is not None:
        said |= {"mean-free-cpu": str(cpu[0]), "std-free-cpu": str(cpu[1])}
    if memory is not None:
        said |= {"mean-free-memory": str(memory[0] * GI), "std-free-memory": str(memory[1] * GI)}
    return node(name).allocatable(cpu="8", memory="16Gi").annotations(**said)


def measured(built: NodeBuilder, *, ago: float = 0.0) -> NodeBuilder:
    """Add the time at which the load was measured, in seconds before now."""
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - ago))
    return built.annotations(**{MEASURED_AT: at})


def among(web: PodBuilder, *names: str) -> PodBuilder:
    """Allow only these nodes for the pod."""
    return web.node_affinity(HOSTNAME, "In", *names)


@dataclass
class Fate:
    """The node of a pod, or the message of its condition."""

    node: str
    message: str = ""


class Extender:
    """`longshore extender` as users run it, with only the rights of its manifest."""

    def __init__(self, process: "subprocess.Popen[bytes]", log: Path) -> None:
        self.process = process
        self.log = log
        self.port = 0

    def line(self, event: str) -> Mapping[str, Any] | None:
        assert self.process.poll() is None, self.log.read_text()
        lines = [json.loads(line) for line in self.log.read_text().splitlines() if line.endswith("}")]
        return next((line for line in lines if line["event"] == event), None)

    def wait(self) -> None:
        serving = eventually(lambda: self.line("serving"), what="serving", within=30, pause=0.02)
        assert serving is not None
        self.port = int(serving["port"])
        eventually(lambda: self.line("ready"), what="ready", within=30, pause=0.02)

    def post(self, verb: str, said: Document) -> Any:
        url = f"http://127.0.0.1:{self.port}/scheduler/{verb}"
        with urllib.request.urlopen(url, data=json.dumps(said).encode(), timeout=20) as answer:
            return json.loads(answer.read())

    def entry(self, agent: str, **more: Any) -> Document:
        """Return a configuration of this extender that scores with the agent, by node names."""
        return entry(self.port, agent, **more)

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(20)


def policy(folder: Path, missing: Missing) -> str:
    """Return the argument that sets the policy of `safe` for nodes without measurements."""
    file = folder / "agents.yaml"
    file.write_text(f"SafeOverload: {{missing: {missing}}}\n")
    return f"--agent-config={file}"


def free_port() -> int:
    """Return a port on which no program listens."""
    port = Port()
    port.release()
    return port.number


def entry(port: int, agent: str, *, filters: bool = False, **more: Any) -> Document:
    verbs = {"prioritizeVerb": f"priorities/{agent}", "weight": 1}
    if filters:
        verbs["filterVerb"] = f"predicates/{agent}"
    return {
        "urlPrefix": f"http://127.0.0.1:{port}/scheduler",
        "nodeCacheCapable": True,
        **verbs,
        **more,
    }


class Scheduler:
    """One kube-scheduler that leaves scoring to its extenders, unless its profile enables score plugins."""

    def __init__(self, world: "World", name: str, component: Component) -> None:
        self._world = world
        self.name = name
        self._component = component

    def submit(self, *webs: Pod, **spec: Any) -> None:
        """Create pods for this scheduler, and do not wait for a decision."""
        for web in webs:
            body = manifest(web)
            body["spec"] |= {"schedulerName": self.name, **spec}
            self._world.api.request("POST", resource_of(web).path(namespace="default"), body)

    def place(self, web: Pod, **spec: Any) -> Fate:
        """Create the pod and return the result of the first attempt. The pod stays."""
        self.submit(web, **spec)
        return self.fate(web)

    def fate(self, web: Pod) -> Fate:
        decided = f"decided by {self.name}"
        found = _fate(eventually(lambda: self._get(web), _fate, what=decided, within=30, pause=0.02))
        assert found is not None
        return found

    def lands(self, web: Pod, *, within: float = 30.0) -> str:
        """Wait until the pod is bound, after any number of attempts, and return its node."""
        found = eventually(lambda: self._get(web), _node, what="bound", within=within, pause=0.02)
        return _node(found)

    def _get(self, web: Pod) -> Document:
        self._component.require_running()
        return self._world.api.get(web)

    def extender_scores(self, web: Pod) -> dict[str, int]:
        """Return the scores of the last extender by node, from 0 to 10."""
        return {name: int(score) for _, name, score in self._lines(_EXTENDER, web)}

    def plugin_scores(self, web: Pod) -> dict[str, int]:
        return {name: int(score) for _, _, name, score in self._lines(_PLUGIN, web)}

    def totals(self, web: Pod) -> dict[str, int]:
        return {name: int(score) for _, name, score in self._lines(_FINAL, web)}

    def _lines(self, pattern: re.Pattern[str], web: Pod) -> list[Any]:
        text = self._component.log.read_text()
        return [found for found in pattern.findall(text) if found[0] == f"default/{web.metadata.name}"]


def _node(found: Document) -> str:
    return str(found["spec"].get("nodeName", ""))


def _fate(found: Document) -> Fate | None:
    if where := _node(found):
        return Fate(where)
    for condition in found["status"].get("conditions", ()):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return Fate("", condition.get("message", ""))
    return None


class World:
    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self.plane = plane
        self.api = Api(plane)
        self._folder = folder
        self._started = 0
        plane.apply(MANIFEST)
        self.kubeconfig = plane.service_account(ACCOUNT, namespace="kube-system")
        for document in priority_classes((1, 100)):
            self.api.request("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", document)

    def named(self, base: str) -> PodBuilder:
        """Return a pod with a unique name."""
        return pod(f"{base}-{secrets.token_hex(3)}")

    @contextmanager
    def having(self, *nodes: Node) -> Iterator["World"]:
        """Run with only these nodes, and delete them and all pods at the end."""
        self.api.create(*nodes)
        try:
            yield self
        finally:
            self.clear()
            self.api.request("DELETE", "/api/v1/nodes")

    @contextmanager
    def behind(self, agents: str, verb: str, *arguments: str, **env: str) -> Iterator[Scheduler]:
        """Run a kube-scheduler and an extender that it asks for one agent. Both processes start together."""
        port = free_port()
        with (
            self.scheduler(entry(port, verb, filters=True)) as scheduler,
            self.extender(agents, f"--port={port}", *arguments, **env),
        ):
            yield scheduler

    @contextmanager
    def extender(self, agents: str, *arguments: str, **env: str) -> Iterator[Extender]:
        self._started += 1
        log = self._folder / f"extender-{self._started}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "longshore", "extender", "--agents", agents, "--port=0"),
                    *("--bind-address=127.0.0.1", f"--kubeconfig={self.kubeconfig}", *arguments),
                ],
                stderr=output,
                env={**os.environ, "KUBECONFIG": "/nonexistent", **env},
            )
        extender = Extender(process, log)
        try:
            extender.wait()
            yield extender
        finally:
            process.kill()
            process.wait()

    @contextmanager
    def scheduler(self, *entries: Document, scoring: str | None = "") -> Iterator[Scheduler]:
        """Run a kube-scheduler with these extenders and the plugin `scoring`, all plugins if None."""
        self._started += 1
        name = f"my-scheduler-{self._started}"
        folder = self._folder / name
        folder.mkdir()
        enabled = {"enabled": [{"name": scoring}]} if scoring else {}
        chosen = {} if scoring is None else {"disabled": [{"name": "*"}], **enabled}
        document = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "podInitialBackoffSeconds": 1,
            "podMaxBackoffSeconds": 1,
            "profiles": [{"schedulerName": name, "plugins": {"score": chosen}}],
            "extenders": list(entries),
        }
        document["clientConnection"] = {"kubeconfig": str(self._scheduler_account)}
        (folder / "config.json").write_text(json.dumps(document))
        component = Component(
            "kube-scheduler",
            build() / "kube-scheduler",
            [f"--config={folder / 'config.json'}", "--secure-port=0", "-v=2", "--vmodule=schedule_one=10"],
            folder=folder,
        )
        component.start()
        try:
            yield Scheduler(self, name, component)
        finally:
            component.kill()

    @cached_property
    def _scheduler_account(self) -> Path:
        for role in ("system:kube-scheduler", "system:volume-scheduler"):
            kubeconfig = self.plane.service_account(
                "kube-scheduler", namespace="kube-system", cluster_role=role
            )
        return kubeconfig

    def clear(self) -> None:
        """Delete all pods."""
        self.api.request("DELETE", "/api/v1/namespaces/default/pods", {"gracePeriodSeconds": 0})
