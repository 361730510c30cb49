"""Kubeconfig files: reads them, checks their structure, and merges them by kubectl's rules.

The first file that defines a cluster, user, or context provides the whole entry; the first current-context
counts too. Each entry knows its file, because relative paths start there and errors name the file and the
entry.
"""

import base64
import binascii
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec
import yaml

from longshore.errors import UserError

EXEC_EXTENSION = "client.authentication.k8s.io/exec"
# The parser in C, if PyYAML was built with it. Both load only plain data.
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Kebab(msgspec.Struct, frozen=True, rename="kebab"):
    """The base of most structs, since most fields of a kubeconfig are in kebab case."""


class Extension(_Kebab, frozen=True):
    name: str = ""
    extension: object = None


class Cluster(_Kebab, frozen=True):
    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""
    disable_compression: bool = False
    extensions: list[Extension] = []


class ExecVariable(_Kebab, frozen=True):
    name: str
    value: str = ""


class Exec(msgspec.Struct, frozen=True, rename="camel"):
    """A command that prints credentials."""

    command: str = ""
    api_version: str = ""
    args: list[str] = []
    env: list[ExecVariable] = []
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = ""


class User(_Kebab, frozen=True):
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    username: str = ""
    password: str = ""
    exec: Exec | None = None
    auth_provider: object = None
    impersonate: str = msgspec.field(default="", name="as")
    as_uid: str = ""
    as_groups: list[str] = []
    as_user_extra: dict[str, list[str]] = {}


class Context(_Kebab, frozen=True):
    cluster: str = ""
    user: str = ""
    namespace: str = ""


class _NamedCluster(_Kebab, frozen=True):
    name: str
    cluster: Cluster = Cluster()


class _NamedUser(_Kebab, frozen=True):
    name: str
    user: User = User()


class _NamedContext(_Kebab, frozen=True):
    name: str
    context: Context = Context()


class _File(_Kebab, frozen=True):
    clusters: list[_NamedCluster] = []
    users: list[_NamedUser] = []
    contexts: list[_NamedContext] = []
    current_context: str = ""


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class NamedEntry(Generic[T]):
    """A cluster, user, or context, and the file that defines it."""

    kind: str
    name: str
    file: Path
    value: T

    def error(self, problem: str) -> UserError:
        return UserError(f'{self.file}: {self.kind} "{self.name}": {problem}')

    def path(self, written: str) -> Path:
        """Return a path from the file, which is relative to the file's folder."""
        return self.file.parent / written

    def content(self, name: str, *, path: str, data: str) -> bytes | None:
        """Return the content of the file that `name` refers to, or the base64 content of `name`-data."""
        if path and data:
            raise self.error(f"{name} and {name}-data are both given: keep one of them")
        if data:
            try:
                return base64.b64decode("".join(data.split()), validate=True)
            except (binascii.Error, ValueError) as error:
                raise self.error(f"{name}-data is not base64: write it with `base64 -w0`") from error
        if path:
            return self.read(name, path)
        return None

    def read(self, name: str, path: str) -> bytes:
        try:
            return self.path(path).read_bytes()
        except OSError as error:
            problem = f"cannot read {name} {self.path(path)}: {error.strerror}"
            raise self.error(f"{problem}: correct the path or its permissions") from error


@dataclass(slots=True)
class Kubeconfig:
    """The merged files."""

    files: list[Path] = field(default_factory=list)
    clusters: dict[str, NamedEntry[Cluster]] = field(default_factory=dict)
    users: dict[str, NamedEntry[User]] = field(default_factory=dict)
    contexts: dict[str, NamedEntry[Context]] = field(default_factory=dict)
    current_context: str = ""

    @property
    def is_empty(self) -> bool:
        return not (self.clusters or self.users or self.contexts or self.current_context)

    def context(self, name: str | None) -> NamedEntry[Context]:
        """Return the context with this name, or the current one."""
        files = os.pathsep.join(map(str, self.files))
        wanted = name or self.current_context
        if not wanted:
            raise UserError(f"{files}: no current-context: specify a context, one of {known(self.contexts)}")
        if wanted not in self.contexts:
            raise UserError(f'{files}: no context "{wanted}": use one of {known(self.contexts)}')
        return self.contexts[wanted]


def known(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "(none is defined)"


def merged(paths: Iterable[Path]) -> Kubeconfig:
    """Return everything that the files define."""
    config = Kubeconfig()
    for path in paths:
        file = path.absolute()
        content = _read(file)
        config.files.append(file)
        config.current_context = config.current_context or content.current_context
        for cluster in content.clusters:
            config.clusters.setdefault(
                cluster.name, NamedEntry("cluster", cluster.name, file, cluster.cluster)
            )
        for user in content.users:
            config.users.setdefault(user.name, NamedEntry("user", user.name, file, user.user))
        for context in content.contexts:
            config.contexts.setdefault(
                context.name, NamedEntry("context", context.name, file, context.context)
            )
    return config


def _read(file: Path) -> _File:
    try:
        document = yaml.load(file.read_bytes(), Loader=_Loader)  # noqa: S506 - one of the safe loaders
    except OSError as error:
        raise UserError(f"cannot read the kubeconfig {file}: {error.strerror}: correct the path") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" in line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or getattr(error, "reason", "unreadable")
        raise UserError(f"{file}: not YAML: {problem}{line}: is this a kubeconfig?") from error
    try:
        return msgspec.convert(_without_nulls(document) or {}, _File)
    except msgspec.ValidationError as error:
        raise UserError(f"{file}: not a kubeconfig: {error}: correct this entry") from error


def _without_nulls(value: object) -> object:
    """Remove nulls, which mean the same as a missing key. `kubectl config view` writes them."""
    if isinstance(value, Mapping):
        return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [_without_nulls(inner) for inner in value]
    return value
