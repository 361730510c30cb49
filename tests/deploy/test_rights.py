"""The rights of `longshore run` are minimal: the audit log of an API server shows that it uses each one."""

import json
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from subprocess import Popen
from typing import Any, NamedTuple

import pytest
import yaml
from tests.deploy.custom_resources import install
from tests.live.pod_sets import member, trigger
from tests.live.pods import create, events, manifest, placed
from tests.live.test_preemption import PRIORITIES, prioritized
from tests.live.test_volumes import claim, selected, storage_class, using, volume
from tests.waiting import eventually

from longshore.api.pod_set import plan_name
from longshore.dev import ControlPlane

pytestmark = pytest.mark.control_plane

DEPLOY = Path(__file__).parents[2] / "deploy"
MANIFESTS = (DEPLOY / "scheduler.yaml", DEPLOY / "triggers.yaml")
ACCOUNT = "system:serviceaccount:kube-system:longshore"
POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    # A watch has an audit line when it begins.
    "omitStages": ["ResponseStarted", "ResponseComplete"],
    "rules": [{"level": "Metadata", "users": [ACCOUNT]}, {"level": "None"}],
}
WRITES = {"create", "patch", "delete"}
PLANS = "scheduleplans.planner.ciena.io"


class Right(NamedTuple):
    verb: str
    group: str
    resource: str


def given() -> set[Right]:
    return {
        Right(verb, group, resource)
        for manifest in MANIFESTS
        for each in yaml.safe_load_all(manifest.read_text())
        if each["kind"] in ("ClusterRole", "Role")
        for rule in each["rules"]
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }


def used(log: Path) -> set[Right]:
    found = set()
    for line in log.read_text().splitlines():
        request = json.loads(line)
        if target := request.get("objectRef"):
            parts = filter(None, (target["resource"], target.get("subresource")))
            found.add(Right(request["verb"], target.get("apiGroup", ""), "/".join(parts)))
    return found


def in_bad_times(rights: set[Right]) -> set[Right]:
    """The rights that are needed only after failures, or with API servers that do not stream lists.

    An object is read after a write of it whose answer was lost (kube/writer.py); what is watched is listed by
    servers that do not stream (kube/reflector.py).
    """
    found = set()
    for verb, group, resource in rights:
        if verb == "watch":
            found.add(Right("list", group, resource))
        elif verb in WRITES and not resource.endswith("reviews"):
            found.add(Right("get", group, resource.partition("/")[0]))
    return found


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[ControlPlane]:
    policy = tmp_path / "policy.json"
    policy.write_text(json.dumps(POLICY))
    with ControlPlane.start(nodes=2, audit_policy=policy) as plane:
        install(plane)
        for each in MANIFESTS:
            plane.apply(each)
        create(plane, "default", *PRIORITIES)
        yield plane


@pytest.fixture
def port(plane: ControlPlane, tmp_path: Path) -> Iterator[int]:
    """Run `longshore run` as it is deployed, with everything enabled, and yield its port."""
    [config_map] = yaml.safe_load_all((DEPLOY / "configmap.yaml").read_text())
    config = tmp_path / "scheduler.yaml"
    measured = "longshore: {measurements: {provider: metrics-server}}\n"
    config.write_text(config_map["data"]["scheduler.yaml"] + measured)
    kubeconfig = plane.service_account("longshore", namespace="kube-system")
    run = [sys.executable, "-m", "longshore", "run", "--kubeconfig", str(kubeconfig), "--config", str(config)]
    log = tmp_path / "scheduler.log"
    with log.open("w") as stderr:
        process = Popen([*run, "--metrics-port=0", "--bind-address=127.0.0.1"], stderr=stderr)
    try:
        message = '"serving metrics"'
        eventually(
            lambda: (log.read_text(), process.poll()),
            lambda found: message in found[0] or found[1] is not None,
            within=30,
        )
        [line] = [line for line in log.read_text().splitlines() if message in line]
        yield json.loads(line)["port"]
        assert process.poll() is None, log.read_text()
    finally:
        process.kill()
        process.wait()


def test_longshore_run_uses_every_right_that_it_has(plane: ControlPlane, port: int) -> None:
    places_pods_and_makes_room(plane)
    binds_volumes(plane)
    keeps_a_set(plane)
    answers_who_asks(plane, port)
    made = used(plane.audit_log)
    assert given() - made - in_bad_times(made) == set()


def places_pods_and_makes_room(plane: ControlPlane) -> None:
    """Wait until a pod that is too large is refused twice. The second time its event counts 2."""
    create(plane, "default", manifest("huge", cpu="99"), *(prioritized(f"low-{n}", cpu="7") for n in (0, 1)))
    eventually(lambda: placed(plane, "default"), lambda found: len(found) == 2)
    create(plane, "default", prioritized("high", cpu="7", priority="high"))
    eventually(lambda: placed(plane, "default"), lambda found: "default/high" in found)
    assert len(placed(plane, "default")) == 2
    plane.kubectl("delete", "pod", "high", "--now")
    eventually(
        lambda: events(plane, "default", "huge"), lambda found: any("series" in event for event in found)
    )


def binds_volumes(plane: ControlPlane) -> None:
    """Bind an existing volume, and one that is created for its claim."""
    there, made = (
        storage_class("local", "kubernetes.io/no-provisioner"),
        storage_class("made", "example.com/x"),
    )
    create(plane, "default", there, made, volume("disk", node="node-0", of_class="local"))
    create(plane, "default", claim("old", of_class="local"), claim("new", of_class="made"))
    create(plane, "default", using("reader", "old"), using("writer", "new"))
    eventually(lambda: placed(plane, "default"), lambda found: "default/reader" in found)
    eventually(lambda: selected(plane, "new"))


def keeps_a_set(plane: ControlPlane) -> None:
    """Hold a set by a gate and release it. Its plan grows, and is deleted with its pods."""
    gated: dict[str, Any] = {"schedulingGates": [{"name": "longshore.dev/pod-set"}]}
    create(plane, "default", trigger(quiet="1s"), member("first", **gated))
    eventually(lambda: placed(plane, "default"), lambda found: "default/first" in found)
    create(plane, "default", member("second"))
    eventually(lambda: placed(plane, "default"), lambda found: "default/second" in found)
    plan = plan_name("default", "batch")
    eventually(
        lambda: plane.kubectl("get", PLANS, plan, "-o", "jsonpath={.status.conditions}"),
        lambda found: "reason" in found,
    )
    plane.kubectl("delete", "pod", "first", "second", "--now")
    eventually(lambda: plane.kubectl("get", PLANS, "-o", "name"), lambda found: not found)


def answers_who_asks(plane: ControlPlane, port: int) -> None:
    token = plane.token("kube-system", "longshore")
    headers = {"Authorization": f"Bearer {token}"}
    request = urllib.request.Request(f"http://127.0.0.1:{port}/debug/pods/default/huge", headers=headers)
    with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310 - our own process
        assert answer.status == 200
