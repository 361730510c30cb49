"""Kubeconfig files for tests, and the one-line errors of invalid ones."""

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from longshore.errors import UserError
from longshore.kube.config import load


def b64(content: bytes) -> str:
    return base64.b64encode(content).decode()


def document(
    *,
    cluster: Mapping[str, object] | None = None,
    user: Mapping[str, object] | None = None,
    context: Mapping[str, object] | None = None,
) -> dict[str, Any]:
    """A kubeconfig with one cluster, user, and context, into which the arguments are merged."""
    return {
        "clusters": [
            {"name": "harbour", "cluster": {"server": "https://localhost:6443"} | dict(cluster or {})}
        ],
        "users": [{"name": "docker", "user": dict(user or {})}],
        "contexts": [
            {"name": "quay", "context": {"cluster": "harbour", "user": "docker"} | dict(context or {})}
        ],
        "current-context": "quay",
    }


def write(path: Path, content: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(content))
    return path


def problem(file: Path | None, *, context: str | None = None) -> str:
    """The one-line error of loading this file."""
    with pytest.raises(UserError) as raised:
        load(file, context=context)
    text = str(raised.value)
    assert "\n" not in text
    return text
