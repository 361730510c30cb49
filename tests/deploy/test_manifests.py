"""The manifests in deploy/ and their image, as far as they can be tested without a container engine."""

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
import yaml
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub
from tests.deploy.container import ENVIRONMENT, SEARCH_PATH, UID, container
from tests.deploy.makefile import make
from tests.live.pod_sets import member, trigger
from tests.live.pods import create, manifest, wait_until_running
from tests.test_package import run, uv
from tests.waiting import eventually

from longshore.agents.reward.arguments import RewardArgs
from longshore.api.plan_request import PlanRequest
from longshore.config.setup import set_up
from longshore.dev import ControlPlane, KubectlError
from longshore.dev.fixtures import OwnCluster
from longshore.kube.planner_calls import PlannerCalls
from longshore.pin.labels import pin_key
from longshore.podset.profile import podset_profile

ROOT = Path(__file__).parents[2]
MANIFESTS = sorted((ROOT / "deploy").glob("*.yaml"))
SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


def objects(kind: str) -> list[dict[str, Any]]:
    every = (each for file in MANIFESTS for each in yaml.safe_load_all(file.read_text()))
    return [each for each in every if each["kind"] == kind]


def named(kind: str, name: str) -> dict[str, Any]:
    [found] = [each for each in objects(kind) if each["metadata"]["name"] == name]
    return found


@pytest.mark.parametrize("file", MANIFESTS, ids=lambda file: str(file.name))
def test_the_api_server_accepts_every_manifest(control_plane: ControlPlane, file: Path) -> None:
    """The validation is strict, so that an unknown field is refused."""
    documents = list(yaml.safe_load_all(file.read_text()))
    # A dry run does not create the namespace of the other objects.
    for namespace in (each for each in documents if each["kind"] == "Namespace"):
        control_plane.apply(yaml.safe_dump(namespace))
    message = control_plane.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", str(file))
    assert message.count("(server dry run)") == len(documents)


def test_the_configuration_in_the_config_map_is_valid(tmp_path: Path) -> None:
    for config in objects("ConfigMap"):
        for name, text in config["data"].items():
            (tmp_path / name).write_text(text)
            loaded = set_up(str(tmp_path / name))
            assert loaded.warnings == ()
            lease = loaded.configuration.leader_election.resource_name
            assert lease in named("Role", "longshore")["rules"][1]["resourceNames"]


def test_pods_are_as_restricted_as_kubernetes_asks_for(control_plane: ControlPlane) -> None:
    """The namespace refuses all pods that do not conform to the policy `restricted`."""
    name = "restricted"
    control_plane.create_namespace(name)
    control_plane.kubectl("label", "ns", name, "pod-security.kubernetes.io/enforce=restricted")
    for deployment in objects("Deployment"):
        template = deployment["spec"]["template"]
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": template["spec"]}
        pod["spec"] = {**template["spec"], "serviceAccountName": "default"}
        control_plane.kubectl("create", "--dry-run=server", "-n", name, "-f", "-", input=json.dumps(pod))
        for each in template["spec"]["containers"]:
            assert each["securityContext"]["readOnlyRootFilesystem"] is True
    control_plane.delete_namespace(name)


def test_the_image_is_what_the_manifests_expect() -> None:
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    assert f"USER {UID}:{UID}" in lines
    assert f"ENV PATH={SEARCH_PATH} PYTHONDONTWRITEBYTECODE=1" in lines
    assert f"COPY --from=build {ENVIRONMENT} {ENVIRONMENT}" in lines
    for deployment in objects("Deployment"):
        assert deployment["spec"]["template"]["spec"]["securityContext"]["runAsUser"] == UID


def test_the_config_map_has_the_profile_of_pod_sets_that_longshore_run_has_by_default(tmp_path: Path) -> None:
    """The order of plugins can differ, because PreFilter plugins do not depend on each other."""
    file = tmp_path / "scheduler.yaml"
    file.write_text(named("ConfigMap", "longshore")["data"]["scheduler.yaml"])
    _, written = set_up(str(file)).configuration.profiles
    built_in = podset_profile()
    assert written.scheduler_name == built_in.scheduler_name
    for point, plugins in built_in.points.items():
        assert set(written.points[point]) == set(plugins), point


def test_storing_rewards_needs_rights_to_one_config_map_only() -> None:
    create, write = named("Role", "longshore-rewards")["rules"]
    assert (create["resources"], create["verbs"]) == (["configmaps"], ["create"])
    assert (write["resources"], write["verbs"]) == (["configmaps"], ["get", "patch"])
    assert write["resourceNames"] == [RewardArgs().config_map]
    assert named("Role", "longshore-rewards")["metadata"]["namespace"] == RewardArgs().config_map_namespace


def writes(role: str) -> set[tuple[str, str]]:
    """Return what the roles of this name allow to write."""
    roles = [each for kind in ("ClusterRole", "Role") for each in objects(kind)]
    return {
        (resource, verb)
        for each in roles
        if each["metadata"]["name"] == role
        for rule in each["rules"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        if verb not in ("get", "list", "watch")
    }


def test_the_scheduler_can_write_triggers_only_with_a_separate_role() -> None:
    of_triggers = {("scheduletriggers", "patch"), ("scheduletriggers/status", "patch")}
    assert not of_triggers & writes("longshore")
    assert writes("longshore-triggers") == of_triggers


def test_the_controller_and_the_planner_can_write_only_what_they_need() -> None:
    assert writes("podset-planner") == set()
    assert writes("longshore-controller") == {
        ("scheduletriggers", "patch"),
        ("scheduletriggers/status", "patch"),
        ("events", "create"),
        ("events", "patch"),
        ("leases", "create"),
        ("leases", "update"),
    }


def test_the_image_has_what_planners_and_agents_need() -> None:
    assert "--extra planner --extra agents" in (ROOT / "Dockerfile").read_text()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with only the wheel, which can be moved to its place in the image."""
    folder = tmp_path_factory.mktemp("wheel")
    run(uv(), "build", "--wheel", "--out-dir", folder, cwd=ROOT)
    [built] = folder.glob("*.whl")
    run(uv(), "venv", "--relocatable", folder / "env", cwd=folder)
    python = folder / "env" / "bin" / "python"
    run(uv(), "pip", "install", "--python", python, f"longshore[planner] @ {built.as_uri()}", cwd=folder)
    return folder / "env"


def answers(probe: dict[str, Any], ports: dict[str, int]) -> bool:
    """Whether a probe of the kubelet succeeds."""
    if "grpc" in probe:
        asked = HealthCheckRequest(service=probe["grpc"].get("service", ""))
        with grpc.insecure_channel(f"127.0.0.1:{probe['grpc']['port']}") as channel:
            try:
                status = HealthStub(channel).Check(asked, timeout=5).status
            except grpc.RpcError:
                return False
        return bool(status == HealthCheckResponse.SERVING)
    port, path = ports[probe["httpGet"]["port"]], probe["httpGet"]["path"]
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return bool(answer.status == 200)
    except urllib.error.HTTPError as error:
        error.close()
        return False
    except OSError:
        return False


# What each command must do. No other process does it in these tests.


def schedules(plane: ControlPlane, namespace: str) -> None:
    """It binds a pod, and a set whose quiet time ends immediately."""
    create(plane, namespace, manifest("web"), trigger(quiet="0s"), member("batch"))
    wait_until_running(plane, namespace, 2, within=60)


def schedules_where_nodes_are_labeled(plane: ControlPlane, namespace: str) -> None:
    create(plane, namespace, manifest("web", scheduler="rfcustom"))
    plane.kubectl("label", "node", "node-1", f"{pin_key('rfcustom', namespace, 'web')}=")
    wait_until_running(plane, namespace, 1, within=60)


def fires(plane: ControlPlane, namespace: str) -> None:
    create(plane, namespace, trigger(quiet="0s"))
    state = ("get", "st", "go", "-n", namespace, "-o", "jsonpath={.spec.state} {.status.held}")
    eventually(lambda: plane.kubectl(*state), lambda found: found == "Schedule 0", within=60)


def plans(plane: ControlPlane, namespace: str) -> None:
    create(plane, namespace, member("batch"))
    request = PlanRequest(namespace, "batch", "batch", ("node-1",))

    eventually(
        lambda: asyncio.run(PlannerCalls().call("127.0.0.1:7777", request, timeout=15)),
        lambda answer: answer == {"batch": "node-1"},
    )


def annotates(plane: ControlPlane, namespace: str) -> None:
    """It writes the requests of pods, although no Prometheus answers."""
    create(plane, namespace, {**manifest("busy"), "spec": {**manifest("busy")["spec"], "nodeName": "node-0"}})
    shown = ("get", "node", "node-0", "-o", r"jsonpath={.metadata.annotations.requested-pods}")
    eventually(lambda: plane.kubectl(*shown), lambda found: found.isdigit(), within=60)


WORK: dict[str, Callable[[ControlPlane, str], None]] = {
    "longshore": schedules,
    "longshore-static": schedules_where_nodes_are_labeled,
    "longshore-controller": fires,
    "podset-planner": plans,
    "longshore-annotator": annotates,
}


@pytest.mark.parametrize("deployment", objects("Deployment"), ids=lambda each: str(each["metadata"]["name"]))
def test_the_command_of_a_deployment_works_as_its_user_with_a_read_only_root(
    installed: ControlPlane, namespace: str, wheel: Path, tmp_path: Path, deployment: dict[str, Any]
) -> None:
    for file in MANIFESTS:
        # All sets of the shared cluster would be planned by the Service of this planner.
        documents = yaml.safe_load_all(file.read_text())
        if others := [each for each in documents if each["kind"] not in ("Deployment", "Service")]:
            installed.apply(yaml.safe_dump_all(others))
    spec, home = deployment["spec"]["template"]["spec"], deployment["metadata"]["namespace"]
    [described] = spec["containers"]
    files = {
        f"{SERVICE_ACCOUNT}/token": installed.token(home, spec["serviceAccountName"]),
        f"{SERVICE_ACCOUNT}/ca.crt": installed.ca_file.read_text(),
        f"{SERVICE_ACCOUNT}/namespace": home,
    }
    configs = {volume["name"]: volume["configMap"]["name"] for volume in spec.get("volumes", ())}
    for mount in described.get("volumeMounts", ()):
        config = named("ConfigMap", configs[mount["name"]])
        files |= {f"{mount['mountPath']}/{name}": text for name, text in config["data"].items()}
    ports = {port["name"]: port["containerPort"] for port in described.get("ports", ())}
    probes = [probe for name, probe in described.items() if name.endswith("Probe")]
    server = installed.server.removeprefix("https://").split(":")
    variables = {"KUBERNETES_SERVICE_HOST": server[0], "KUBERNETES_SERVICE_PORT": server[1]}
    variables |= {variable["name"]: variable["value"] for variable in described.get("env", ())}

    with container(
        [*described["command"], *described["args"]],
        wheel=wheel,
        files=files,
        variables=variables,
        scratch=tmp_path,
    ) as (process, log):
        eventually(
            lambda: (process.poll(), [answers(probe, ports) for probe in probes], log.read_text()),
            lambda found: found[0] is not None or all(found[1]),
            what="answering its probes",
            within=60,
        )
        assert process.poll() is None, log.read_text()
        WORK[deployment["metadata"]["name"]](installed, namespace)
        status = Path(f"/proc/{process.pid}/status").read_text()
        process.terminate()
        assert process.wait(20) == 0, log.read_text()
    # The manifests give it all rights that it needs.
    assert "is forbidden" not in log.read_text()
    if "--map-root-user" not in str(process.args):
        assert f"Uid:\t{UID}\t{UID}\t{UID}\t{UID}" in status


@pytest.mark.parametrize(
    ("suffix", "namespace", "name"),
    [("", "kube-system", "longshore"), ("-static", "longshore-static", "longshore-static")],
    ids=["run", "static"],
)
def test_make_deploys_the_image_of_the_registry_and_removes_everything(
    control_plane: ControlPlane, suffix: str, namespace: str, name: str
) -> None:
    make(control_plane, f"deploy{suffix}")
    image = "{.spec.template.spec.containers[0].image}"
    get = ("get", "-n", namespace)
    deployed = control_plane.kubectl(*get, "deployment", name, "-o", f"jsonpath={image}")
    assert deployed.startswith("registry.example.org/team/longshore:")
    make(control_plane, f"undeploy{suffix}")
    left = control_plane.kubectl(*get, "deployment,configmap,serviceaccount,role", "-o", "name")
    left += control_plane.kubectl("get", "clusterrole,clusterrolebinding", "-o", "name")
    assert f"/{name}\n" not in left


# As its manager has it.
PALLETS_SERVICE = """
apiVersion: v1
kind: Namespace
metadata: {name: planner-system, labels: {control-plane: controller-manager}}
---
apiVersion: v1
kind: Service
metadata:
  name: planner-controller-manager-metrics-service
  namespace: planner-system
  labels: {control-plane: controller-manager}
spec:
  ports: [{name: https, port: 7443, protocol: TCP, targetPort: https}]
  selector: {control-plane: controller-manager}
"""


def may(plane: ControlPlane, verb: str, resource: str, subresource: str = "") -> bool:
    """Whether the scheduler has this right."""
    more = ("--subresource", subresource, "--as=system:serviceaccount:kube-system:longshore")
    try:
        return plane.kubectl("auth", "can-i", verb, resource, *more) == "yes\n"
    except KubectlError:
        return False


def test_make_deploys_three_parts_and_only_the_controller_can_fire_triggers(
    own_cluster: OwnCluster,
) -> None:
    plane = own_cluster(nodes=0, kwok=False)
    triggers = "scheduletriggers.planner.ciena.io"
    make(plane, "deploy")
    assert may(plane, "patch", triggers)
    plane.kubectl("apply", "-f", "-", input=PALLETS_SERVICE)
    make(plane, "deploy-apart")
    # The API server takes a moment to see changed roles.
    eventually(lambda: may(plane, "patch", triggers), lambda found: not found)
    assert not may(plane, "patch", triggers, "status")
    assert may(plane, "watch", triggers)
    assert may(plane, "patch", "scheduleplans.planner.ciena.io")
    every = ("get", "deployment", "-A", "-o")
    assert set(plane.kubectl(*every, "jsonpath={.items[*].metadata.name}").split()) == {
        "longshore",
        "longshore-controller",
        "podset-planner",
    }
    containers = "{range .items[*]}{.spec.template.spec.containers[0]['image', 'args']}{'\\n'}{end}"
    message = plane.kubectl(*every, f"jsonpath={containers}")
    assert message.count("registry.example.org/team/longshore:") == 3
    assert "--controllers=none" in message
    # The names and ports are those of Pallet, and the services lead to Longshore now.
    shown = "{range .items[*]}{.metadata.name}:{.spec.ports[*].port} {.spec.selector}{'\\n'}{end}"
    services = plane.kubectl("get", "service", "-n", "planner-system", "-o", f"jsonpath={shown}")
    assert services.splitlines() == [
        'planner-controller-manager-metrics-service:7443 {"app.kubernetes.io/name":"longshore-controller"}',
        'podset-planner:7309 {"app.kubernetes.io/name":"podset-planner"}',
    ]
    plane.kubectl("wait", "--for=condition=Established", f"crd/{triggers}")
    create(plane, "default", trigger())
    make(plane, "undeploy-apart")
    left = plane.kubectl("get", "deployment,service,serviceaccount,clusterrole,role", "-A", "-o", "name")
    assert not {"longshore", "longshore-controller", "longshore-triggers", "podset-planner"} & {
        line.partition("/")[2] for line in left.splitlines()
    }
    assert plane.kubectl("get", "st", "-o", "name") == "scheduletrigger.planner.ciena.io/go\n"
    make(plane, "uninstall")
    assert "planner.ciena.io" not in plane.kubectl("get", "crd", "-o", "name")
