"""The manifests of deploy/extender as processes, with the same commands, arguments, variables and account.

There is a process for each container of the pod. Only two things differ, because there is no cluster network:
the ports, which can be in use on this machine, and the address of the API server.
"""

import os
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from tests.waiting import eventually

from longshore.dev import ControlPlane
from longshore.dev.build import build
from longshore.dev.ports import Port

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "extender"
FILES = sorted(FOLDER.glob("extender.*.yaml"))
ACCOUNT = "extender-serviceaccount"
SCHEDULER = "my-scheduler-ctr"
_READY_SECONDS = 60


@dataclass(frozen=True)
class Manifest:
    """The content of one file."""

    config_map: dict[str, Any]
    deployment: dict[str, Any]

    @classmethod
    def read(cls, file: Path) -> "Manifest":
        return cls.parse(file.read_text())

    @classmethod
    def parse(cls, text: str) -> "Manifest":
        config_map, deployment = yaml.safe_load_all(text)
        return cls(config_map, deployment)

    @property
    def configuration(self) -> dict[str, Any]:
        """The configuration of kube-scheduler."""
        [text] = self.config_map["data"].values()
        loaded: dict[str, Any] = yaml.safe_load(text)
        return loaded

    @property
    def pod(self) -> dict[str, Any]:
        spec: dict[str, Any] = self.deployment["spec"]["template"]["spec"]
        return spec

    @property
    def containers(self) -> dict[str, dict[str, Any]]:
        return {each["name"]: each for each in self.pod["containers"]}

    @property
    def extenders(self) -> dict[str, dict[str, Any]]:
        return {name: each for name, each in self.containers.items() if name != SCHEDULER}


def variables(container: Mapping[str, Any]) -> dict[str, str]:
    return {each["name"]: each["value"] for each in container.get("env", ())}


def port_of(container: Mapping[str, Any]) -> int:
    [port] = container["ports"]
    return int(port["containerPort"])


@dataclass
class Pod:
    """The processes by the names of their containers, with their logs and their ports."""

    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    logs: dict[str, Path] = field(default_factory=dict)
    ports: dict[str, int] = field(default_factory=dict)

    def log(self, name: str) -> str:
        return self.logs[name].read_text()


@contextmanager
def running(manifest: Manifest, kubeconfig: Path, folder: Path) -> Iterator[Pod]:
    """Start the pod of a manifest, and wait for its probes. `kubeconfig` is that of its service account."""
    pod = Pod()
    for name in manifest.containers:
        port = Port()
        pod.ports[name] = port.number
        port.release()
    config = folder / "config.yaml"
    config.write_text(yaml.safe_dump(_configuration(manifest, pod.ports, kubeconfig)))
    with ExitStack() as stack:
        for name, container in manifest.containers.items():
            command = [*container["command"], *container["args"]]
            given = {**os.environ, "KUBECONFIG": str(kubeconfig), **variables(container)}
            if name == SCHEDULER:
                command = _kube_scheduler(command, config, kubeconfig, pod.ports[name])
            else:
                command = [sys.executable, "-m", *command]
                given["HTTP_PORT"] = str(pod.ports[name])
            pod.logs[name] = folder / f"{name}.log"
            stack.enter_context(_started(pod, name, command, given))
        _wait_until_ready(manifest, pod)
        yield pod


def account(plane: ControlPlane) -> Path:
    """Return a kubeconfig with exactly the rights of service-account.yaml."""
    plane.apply(FOLDER / "service-account.yaml")
    return plane.service_account(ACCOUNT, namespace="kube-system")


def _configuration(manifest: Manifest, ports: Mapping[str, int], kubeconfig: Path) -> dict[str, Any]:
    configuration = manifest.configuration
    configuration["clientConnection"] = {"kubeconfig": str(kubeconfig)}
    here = {port_of(container): ports[name] for name, container in manifest.extenders.items()}
    for entry in configuration["extenders"]:
        for there, port in here.items():
            entry["urlPrefix"] = entry["urlPrefix"].replace(f"localhost:{there}/", f"localhost:{port}/")
    return configuration


def _kube_scheduler(command: list[str], config: Path, kubeconfig: Path, port: int) -> list[str]:
    program, *arguments = command
    arguments = [f"--config={config}" if each.startswith("--config=") else each for each in arguments]
    here = [f"--secure-port={port}", "--bind-address=127.0.0.1"]
    here += [f"--authentication-kubeconfig={kubeconfig}", f"--authorization-kubeconfig={kubeconfig}"]
    return [str(build() / program), *arguments, *here]


@contextmanager
def _started(pod: Pod, name: str, command: list[str], environment: dict[str, str]) -> Iterator[None]:
    with pod.logs[name].open("wb") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    pod.processes[name] = process
    try:
        yield
    finally:
        # kube-scheduler releases its lease.
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_until_ready(manifest: Manifest, pod: Pod) -> None:
    for name, container in manifest.containers.items():
        for probe in (container["livenessProbe"], container["readinessProbe"]):
            process, url, port = pod.processes[name], probe["httpGet"], pod.ports[name]
            eventually(
                lambda: (process.poll(), _answers(url, port), pod.log(name)),  # noqa: B023 - not kept
                lambda found: found[0] is not None or found[1],
                within=_READY_SECONDS,
            )
            assert process.poll() is None, pod.log(name)


def _answers(probe: Mapping[str, str], port: int) -> bool:
    """Whether a probe of the kubelet succeeds. The kubelet does not check certificates either."""
    anything = ssl.create_default_context()
    anything.check_hostname = False
    anything.verify_mode = ssl.CERT_NONE
    url = f"{probe.get('scheme', 'HTTP').lower()}://127.0.0.1:{port}{probe['path']}"
    try:
        with urllib.request.urlopen(url, timeout=5, context=anything) as answer:  # noqa: S310 - ours
            return bool(answer.status == 200)
    except urllib.error.HTTPError as error:
        error.close()
        return False
    except OSError:
        return False
