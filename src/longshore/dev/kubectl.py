"""Runs kubectl for one cluster, with its discovery cache in the cluster's folder."""

import os
import subprocess
from pathlib import Path

from longshore.errors import UserError

_TIMEOUT_SECONDS = 120


class KubectlError(UserError):
    """kubectl failed. The text is its own message."""


def environment(kubeconfig: Path) -> dict[str, str]:
    """Return the environment in which kubectl uses only the cluster of this kubeconfig."""
    return os.environ | {
        "KUBECONFIG": str(kubeconfig),
        "KUBECACHEDIR": str(kubeconfig.parent / "kubectl-cache"),
    }


def run(program: Path, kubeconfig: Path, arguments: tuple[str, ...], *, stdin: str | None = None) -> str:
    """Run kubectl and return its output. Raises `KubectlError` if it fails."""
    done = subprocess.run(
        [str(program), *arguments],
        env=environment(kubeconfig),
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_SECONDS,
        check=False,
    )
    if done.returncode:
        raise KubectlError(f"kubectl {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout
