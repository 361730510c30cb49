"""Pod sets, triggers and plans as users create them, and the commands about them."""

import json
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.live.pods import bind, create, manifest

from longshore.api.pod_set import API_VERSION, POD_SET_LABEL, QUIET_TIME_LABEL, SCHEDULER_NAME, plan_name
from longshore.dev import ControlPlane

Done = subprocess.CompletedProcess[str]

SUCCESS = "Planner assignment verification success\n"
NO_PLANS = "No scheduleplan instances found\n"


@contextmanager
def nodes(plane: ControlPlane) -> Iterator[list[str]]:
    """Create three nodes of 4 cores. The label `pool` has the common prefix of their names."""
    name = f"pool-{secrets.token_hex(3)}"
    names = plane.add_nodes(3, cpu="4", memory="8Gi", prefix=f"{name}-", labels={"pool": name})
    yield names
    plane.kubectl("delete", "node", *names)


def trigger(name: str = "go", podset: str = "batch", *, quiet: str = "", **spec: Any) -> dict[str, Any]:
    labels = ({POD_SET_LABEL: podset} if podset else {}) | ({QUIET_TIME_LABEL: quiet} if quiet else {})
    return {
        "apiVersion": API_VERSION,
        "kind": "ScheduleTrigger",
        "metadata": {"name": name, "labels": labels},
        "spec": {"state": "Planning", **spec},
    }


@dataclass
class Stage:
    plane: ControlPlane
    namespace: str
    # Nodes of 4 cores that pods of the test go to.
    nodes: list[str]

    def member(
        self, name: str, podset: str = "batch", *, cpu: str = "1", scheduler: str = SCHEDULER_NAME
    ) -> dict[str, Any]:
        pod = manifest(name, cpu=cpu, scheduler=scheduler, labels={POD_SET_LABEL: podset})
        pod["spec"]["nodeSelector"] = {"pool": self.nodes[0].rpartition("-")[0]}
        return pod

    def plan(
        self, entries: Mapping[str, str], podset: str = "batch", *, namespace: str = ""
    ) -> dict[str, Any]:
        return {
            "apiVersion": API_VERSION,
            "kind": "SchedulePlan",
            "metadata": {
                "name": plan_name(namespace or self.namespace, podset),
                "labels": {POD_SET_LABEL: podset},
            },
            "spec": {"plan": [{"pod": pod, "node": node} for pod, node in entries.items()]},
        }

    def create(self, *objects: dict[str, Any]) -> None:
        create(self.plane, self.namespace, *objects)

    def bind(self, pods: Mapping[str, str]) -> None:
        for name, node in pods.items():
            bind(self.plane, self.namespace, name, node)

    def set_status(self, kind: str, name: str, status: Mapping[str, Any]) -> None:
        patch = json.dumps({"status": status})
        self.kubectl("patch", kind, name, "--subresource=status", "--type=merge", "-p", patch)

    def kubectl(self, *arguments: str) -> str:
        return self.plane.kubectl(*arguments, "-n", self.namespace)

    def state(self, name: str = "go") -> str:
        return self.kubectl("get", "st", name, "-o", "jsonpath={.spec.state}")

    def versions(self) -> dict[str, str]:
        """Return the version of each object in the namespace that a command about sets might write."""
        listed = json.loads(self.kubectl("get", "pods,st,sp,events", "-o", "json"))
        return {
            f"{item['kind']}/{item['metadata']['name']}": item["metadata"]["resourceVersion"]
            for item in listed["items"]
        }

    def caller(self, *rules: tuple[str, str, str], name: str = "caller") -> Path:
        """Return a kubeconfig with the rights `(group, resources, verbs)` and no others."""
        return self.plane.service_account(
            name,
            namespace=self.namespace,
            rules=[
                {"apiGroups": [group], "resources": resources.split(), "verbs": verbs.split()}
                for group, resources, verbs in rules
            ],
        )

    def environment(self, kubeconfig: Path | None = None) -> dict[str, str]:
        return os.environ | {"KUBECONFIG": str(kubeconfig or self.plane.kubeconfig), "COLUMNS": "80"}

    def run(self, *arguments: str, kubeconfig: Path | None = None, namespace: str | None = "") -> Done:
        """Run `longshore` for the namespace of the test, for another one, or without one if it is None."""
        return subprocess.run(
            self.command(*arguments, namespace=namespace),
            capture_output=True,
            encoding="utf-8",
            check=False,
            env=self.environment(kubeconfig) | {"PYTHONIOENCODING": "utf-8"},
        )

    def command(self, *arguments: str, namespace: str | None = "") -> Sequence[str]:
        where = () if namespace is None else ("-n", namespace or self.namespace)
        return [sys.executable, "-m", "longshore", *arguments, *where]


def as_json(done: Done, *, code: int = 0) -> Any:
    assert (done.returncode, done.stderr) == (code, "")
    return json.loads(done.stdout)


def the_error(done: Done) -> str:
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    return done.stderr
