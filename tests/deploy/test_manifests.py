"""The manifests in deploy/ and the image they run: as far as can be told without a container engine."""

import json
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.deploy.container import ENVIRONMENT, SEARCH_PATH, UID, container
from tests.live.pods import create, manifest, wait_until_running
from tests.test_package import run, uv

from longshore.dev import ControlPlane
from longshore.dev.build import build
from longshore.framework.configuration import parse

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
    """Strictly: a field that does not exist is refused."""
    told = control_plane.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", str(file))
    assert told.count("(server dry run)") == len(list(yaml.safe_load_all(file.read_text())))


def test_the_configuration_in_the_config_map_is_valid() -> None:
    for config in objects("ConfigMap"):
        for name, text in config["data"].items():
            loaded = parse(text, source=name)
            assert loaded.warnings == ()
            lease = loaded.configuration.leader_election.resource_name
            assert lease in named("Role", "longshore")["rules"][1]["resourceNames"]


def test_pods_are_as_restricted_as_kubernetes_asks_for(control_plane: ControlPlane) -> None:
    """The namespace's policy is told to refuse whatever is not `restricted`."""
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


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel and nothing else, that can be moved to where the image has it."""
    folder = tmp_path_factory.mktemp("wheel")
    run(uv(), "build", "--wheel", "--out-dir", folder, cwd=ROOT)
    [built] = folder.glob("*.whl")
    run(uv(), "venv", "--relocatable", folder / "env", cwd=folder)
    python = folder / "env" / "bin" / "python"
    run(uv(), "pip", "install", "--python", python, built, cwd=folder)
    return folder / "env"


def probed(port: int, path: str) -> int:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            status: int = answer.status
            return status
    except urllib.error.HTTPError as error:
        with error:
            return error.code
    except OSError:
        return 0


@pytest.mark.parametrize("deployment", objects("Deployment"), ids=lambda each: str(each["metadata"]["name"]))
def test_the_command_of_a_deployment_schedules_as_its_user_on_a_read_only_root(
    control_plane: ControlPlane, namespace: str, wheel: Path, tmp_path: Path, deployment: dict[str, Any]
) -> None:
    for file in MANIFESTS:
        if "Deployment" not in file.read_text():
            control_plane.apply(file)
    spec = deployment["spec"]["template"]["spec"]
    [described] = spec["containers"]
    files = {
        f"{SERVICE_ACCOUNT}/token": control_plane.token("kube-system", spec["serviceAccountName"]),
        f"{SERVICE_ACCOUNT}/ca.crt": control_plane.ca_file.read_text(),
        f"{SERVICE_ACCOUNT}/namespace": deployment["metadata"]["namespace"],
    }
    configs = {volume["name"]: volume["configMap"]["name"] for volume in spec["volumes"]}
    for mount in described["volumeMounts"]:
        config = named("ConfigMap", configs[mount["name"]])
        files |= {f"{mount['mountPath']}/{name}": text for name, text in config["data"].items()}
    ports = {port["name"]: port["containerPort"] for port in described["ports"]}
    probes = [described[probe]["httpGet"] for probe in ("livenessProbe", "readinessProbe")]
    server = control_plane.server.removeprefix("https://").split(":")
    variables = {"KUBERNETES_SERVICE_HOST": server[0], "KUBERNETES_SERVICE_PORT": server[1]}

    with container(
        [*described["command"], *described["args"]],
        wheel=wheel,
        files=files,
        variables=variables,
        scratch=tmp_path,
    ) as (process, log):
        deadline = time.monotonic() + 60
        while [probed(ports[probe["port"]], probe["path"]) for probe in probes] != [200, 200]:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        status = Path(f"/proc/{process.pid}/status").read_text()
        create(control_plane, namespace, manifest("web"))
        wait_until_running(control_plane, namespace, 1, within=60)
        process.terminate()
        assert process.wait(20) == 0, log.read_text()
    if "--map-root-user" not in str(process.args):
        assert f"Uid:\t{UID}\t{UID}\t{UID}\t{UID}" in status


def test_make_deploys_with_the_image_of_the_registry_and_takes_all_back(control_plane: ControlPlane) -> None:
    kubectl = f"KUBECTL={build() / 'kubectl'} --kubeconfig {control_plane.kubeconfig}"
    make = ["make", "-C", str(ROOT), kubectl, "DOCKER_REGISTRY=registry.example.org/team"]
    subprocess.run([*make, "deploy"], check=True, capture_output=True)
    image = "{.spec.template.spec.containers[0].image}"
    get = ("get", "-n", "kube-system")
    deployed = control_plane.kubectl(*get, "deployment", "longshore", "-o", f"jsonpath={image}")
    assert deployed.startswith("registry.example.org/team/longshore:")
    subprocess.run([*make, "undeploy"], check=True, capture_output=True)
    left = control_plane.kubectl(*get, "deployment,configmap,serviceaccount,role", "-o", "name")
    assert "longshore" not in left
