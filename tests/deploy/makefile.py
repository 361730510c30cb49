"""Run the targets of the Makefile that deploy to a cluster."""

import subprocess
from pathlib import Path

from longshore.dev import ControlPlane
from longshore.dev.build import build

ROOT = Path(__file__).parents[2]


def make(plane: ControlPlane, target: str, *variables: str) -> None:
    kubectl = f"KUBECTL={build() / 'kubectl'} --kubeconfig {plane.kubeconfig}"
    registry = "DOCKER_REGISTRY=registry.example.org/team"
    command = ["make", "-C", str(ROOT), kubectl, registry, *variables, target]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
