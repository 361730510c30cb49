"""The manifests of deploy/extender are consistent, and work on a real control plane."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from tests.deploy.extender_manifests import (
    ACCOUNT,
    FILES,
    FOLDER,
    SCHEDULER,
    Manifest,
    account,
    port_of,
    running,
    variables,
)
from tests.deploy.makefile import make
from tests.live.pods import events, pods
from tests.waiting import eventually

from longshore.agents.reward.arguments import RewardArgs
from longshore.cli import _longshore
from longshore.dev import ControlPlane
from longshore.dev.build import KUBERNETES_VERSION, build
from longshore.framework.extension_points import points_of
from longshore.serve.extender.agent_choice import choose

NAMES = {"congestion", "foo", "pigeon", "safe", "safe.congestion", "safe.pigeon"}
GIB = 2**30

real = pytest.mark.control_plane
each_file = pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.name))


def manifest(name: str) -> Manifest:
    return Manifest.read(FOLDER / f"extender.{name}.yaml")


def agents(container: dict[str, Any]) -> list[str]:
    _, chosen = container["args"]
    return str(chosen).removeprefix("--agents=").split(",")


def plugins_of(container: dict[str, Any]) -> dict[str, Any]:
    """Return the plugin classes of the agents of a container, by verb."""
    chosen = choose(agents(container))
    return {plugin.thing.verb: plugin.thing for agent in chosen for plugin in agent.plugins}


def test_there_is_a_manifest_for_each_usual_choice_of_agents() -> None:
    assert {file.name.removeprefix("extender.").removesuffix(".yaml") for file in FILES} == NAMES


# These parts are the same in all manifests.


def generic(found: Manifest) -> dict[str, Any]:
    """Return a manifest without the parts that depend on its agents."""
    configuration = {**found.configuration, "extenders": ...}
    containers = [found.containers[SCHEDULER], *map(generic_extender, found.extenders.values())]
    pod = {**found.pod, "containers": containers[:2]}
    template = {**found.deployment["spec"]["template"], "spec": pod}
    deployment = {**found.deployment, "spec": {**found.deployment["spec"], "template": template}}
    assert all(each == containers[1] for each in containers[1:])
    return {"map": {**found.config_map, "data": configuration}, "deployment": deployment}


def generic_extender(container: dict[str, Any]) -> dict[str, Any]:
    number = container["name"].removeprefix("my-extender-ctr-")
    bare = {name: value for name, value in container.items() if name not in ("name", "env", "ports", "args")}
    assert json.dumps(bare).count(f'"extender-{number}"') == 2
    text = json.dumps(bare).replace(f'"extender-{number}"', '"extender"')
    return {**json.loads(text), "args": [each.partition("=")[0] for each in container["args"]]}


@each_file
def test_manifests_differ_only_in_their_agents(file: Path) -> None:
    assert generic(Manifest.read(file)) == generic(manifest("safe"))


@each_file
def test_containers_and_ports_are_numbered_and_agree_with_the_entries(file: Path) -> None:
    found = Manifest.read(file)
    served = {}
    for number, (name, container) in enumerate(found.extenders.items(), start=1):
        assert name == f"my-extender-ctr-{number}"
        assert port_of(container) == 5400 + number
        assert variables(container)["HTTP_PORT"] == str(5400 + number)
        served[f"http://localhost:{5400 + number}/scheduler"] = plugins_of(container)
    entries = found.configuration["extenders"]
    assert {entry["urlPrefix"] for entry in entries} == served.keys()
    for entry in entries:
        assert entry["nodeCacheCapable"] is True
        for key, prefix, point in (
            ("filterVerb", "predicates/", "filter"),
            ("prioritizeVerb", "priorities/", "score"),
        ):
            if verb := entry.get(key):
                plugin = served[entry["urlPrefix"]][verb.removeprefix(prefix)]
                assert point in points_of(plugin)


@each_file
def test_only_extenders_with_a_protecting_filter_are_not_ignorable(file: Path) -> None:
    for entry in Manifest.read(file).configuration["extenders"]:
        protects = entry.get("filterVerb", "") == "predicates/safe-overload"
        assert entry["ignorable"] is not protects


@each_file
def test_commands_and_arguments_exist(file: Path) -> None:
    for container in Manifest.read(file).extenders.values():
        assert container["command"] == ["longshore"]
        name, *arguments = container["args"]
        command = _longshore.get_command(click.Context(_longshore), name)
        assert command is not None
        with command.make_context(name, list(arguments)):
            pass


class Watched(dict[str, str]):
    """An environment that records which variables are read."""

    def __init__(self) -> None:
        super().__init__()
        self.read: set[str] = set()

    def get(self, key: str, default: Any = None) -> Any:
        self.read.add(key)
        return default


@each_file
def test_variables_are_those_that_the_agents_read(file: Path) -> None:
    for container in Manifest.read(file).extenders.values():
        watched = Watched()
        for plugin in plugins_of(container).values():
            plugin.environment(watched)
        assert variables(container).keys() == watched.read | {"HTTP_PORT", "LOG_LEVEL"}


def test_the_scheduler_is_the_version_that_is_tested() -> None:
    assert manifest("safe").containers[SCHEDULER]["image"].endswith(f":v{KUBERNETES_VERSION}")


def test_extenders_can_write_only_rewards() -> None:
    documents = list(yaml.safe_load_all((FOLDER / "service-account.yaml").read_text()))
    assert documents[0]["metadata"]["name"] == ACCOUNT
    written = {
        (resource, verb)
        for role in documents
        if role["kind"] in ("Role", "ClusterRole")
        for rule in role["rules"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        if verb not in ("get", "list", "watch")
    }
    # The lease belongs to kube-scheduler.
    assert written == {("leases", "update"), ("configmaps", "create"), ("configmaps", "patch")}
    [rewards] = [
        name
        for role in documents
        for rule in role.get("rules", ())
        for name in rule.get("resourceNames", ())
        if "configmaps" in rule["resources"]
    ]
    assert rewards == RewardArgs().config_map


# On a real control plane.


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    """A cluster for these tests, with two nodes of 8 CPUs and 32 GiB."""
    with ControlPlane.start(nodes=2) as plane:
        yield plane


@real
@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.yaml")), ids=lambda file: str(file.name))
def test_the_api_server_accepts_every_manifest(cluster: ControlPlane, file: Path) -> None:
    """The validation is strict, so that an unknown field is refused."""
    documents = list(yaml.safe_load_all(file.read_text()))
    message = cluster.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", str(file))
    assert message.count("(server dry run)") == len(documents)


@real
def test_pods_are_as_restricted_as_kubernetes_asks_for(cluster: ControlPlane) -> None:
    cluster.create_namespace("restricted")
    cluster.kubectl("label", "ns", "restricted", "pod-security.kubernetes.io/enforce=restricted")
    for file in FILES:
        spec = {**Manifest.read(file).pod, "serviceAccountName": "default"}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": spec}
        cluster.kubectl("create", "--dry-run=server", "-n", "restricted", "-f", "-", input=json.dumps(pod))
        for container in spec["containers"]:
            assert container["securityContext"]["readOnlyRootFilesystem"] is True


@real
@each_file
def test_kube_scheduler_accepts_the_configuration(cluster: ControlPlane, file: Path, tmp_path: Path) -> None:
    configuration = Manifest.read(file).configuration
    configuration["clientConnection"] = {"kubeconfig": str(cluster.kubeconfig)}
    given, written = tmp_path / "given.yaml", tmp_path / "written.yaml"
    given.write_text(yaml.safe_dump(configuration))
    done = subprocess.run(
        [build() / "kube-scheduler", f"--config={given}", f"--write-config-to={written}", "--secure-port=0"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = yaml.safe_load(written.read_text())["extenders"]
    assert [entry["urlPrefix"] for entry in found] == [
        entry["urlPrefix"] for entry in configuration["extenders"]
    ]


def annotate(plane: ControlPlane, node: str, **annotations: str) -> None:
    said = [f"{name.replace('_', '-')}={value}" for name, value in annotations.items()]
    plane.kubectl("annotate", "--overwrite", "node", node, *said)


@real
@pytest.mark.parametrize("name", ["safe.congestion", "safe.pigeon"])
def test_the_pod_schedules_by_load_with_the_rights_of_its_account(
    cluster: ControlPlane, tmp_path: Path, name: str
) -> None:
    """One node is overloaded, so the other agent does not matter."""
    load = {"mean_free_memory": str(20 * GIB), "std_free_memory": str(GIB), "congestion_factor": "0"}
    annotate(cluster, "node-0", mean_free_cpu="400", std_free_cpu="200", **load)
    annotate(cluster, "node-1", mean_free_cpu="6000", std_free_cpu="200", **load)
    namespace = name.replace(".", "-")
    cluster.create_namespace(namespace)
    with running(manifest(name), account(cluster), tmp_path) as pod:
        cluster.kubectl("create", "-n", namespace, "-f", str(FOLDER / "test-pod.yaml"))
        eventually(
            lambda: pods(cluster, namespace)["test-pod"]["status"]["phase"],
            lambda found: found == "Running",
            within=60,
        )
        assert pods(cluster, namespace)["test-pod"]["spec"]["nodeName"] == "node-1"
        message = [e["note"] for e in events(cluster, namespace, "test-pod") if e["reason"] == "Scheduled"]
        assert message == [f"Successfully assigned {namespace}/test-pod to node-1"]
    for container in pod.logs:
        assert "forbidden" not in pod.log(container).lower(), container


@real
def test_make_deploys_the_chosen_agents_and_removes_everything(cluster: ControlPlane) -> None:
    make(cluster, "deploy-extender", "AGENTS=safe.congestion")
    get = ("get", "-n", "kube-system")
    images = "jsonpath={.spec.template.spec.containers[*].image}"
    deployed = cluster.kubectl(*get, "deployment", "my-scheduler", "-o", images).split()
    assert [image.rpartition(":")[0] for image in deployed] == [
        "registry.k8s.io/kube-scheduler",
        "registry.example.org/team/longshore",
        "registry.example.org/team/longshore",
    ]
    make(cluster, "undeploy-extender")
    left = cluster.kubectl(*get, "deployment,configmap,serviceaccount,role,rolebinding", "-o", "name")
    left += cluster.kubectl("get", "clusterrole,clusterrolebinding", "-o", "name")
    assert not [line for line in left.splitlines() if "extender" in line or "my-scheduler" in line]
