"""Self-contained kubeconfig files: they include the authority and the certificate and key, or the token."""

import base64
import os
from pathlib import Path

import yaml

from longshore.dev.keys import Pair


def write_kubeconfig(
    path: Path, *, server: str, ca_file: Path, client: Pair | None = None, token: str | None = None
) -> Path:
    """Write a kubeconfig that only its owner can read, for a client certificate or a token."""
    user: dict[str, str] = {}
    if client is not None:
        user["client-certificate-data"] = _encoded(client.public)
        user["client-key-data"] = _encoded(client.private)
    if token is not None:
        user["token"] = token
    name = path.stem
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": "longshore-dev",
                "cluster": {"server": server, "certificate-authority-data": _encoded(ca_file)},
            }
        ],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": {"cluster": "longshore-dev", "user": name}}],
        "current-context": name,
    }
    # Replaced in one step, because a process that is starting may be reading the old file.
    new = path.with_name(f"{path.name}.new")
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        yaml.safe_dump(config, file, sort_keys=False)
    return new.replace(path)


def _encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
