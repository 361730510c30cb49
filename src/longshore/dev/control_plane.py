"""A real control plane on this machine, which ends when the process that started it does.

The starting process owns all components. All state is in one folder: certificates, kubeconfigs, logs, and the
data of etcd. `longshore dev up` starts a supervisor that owns a control plane; a test process owns one
itself.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from longshore.dev import components, kubectl, scratch
from longshore.dev.build import build
from longshore.dev.cache import GIB, private_folder, remove_folder, require_linux, require_space
from longshore.dev.component import Component
from longshore.dev.nodes import node_object, not_usable
from longshore.dev.ports import Port
from longshore.errors import UserError

_POLL_SECONDS = 0.05
# Generous, because a busy machine may need long. A component that ends is noticed immediately anyway.
_SETTLE_SECONDS = 120
_SECONDS_PER_NODE = 0.1
# With thousands of nodes, each response has megabytes: polling must not become the load that delays them.
_PAUSE_PER_NODE = 0.0005
# etcd allocates 64 MiB for its log at the start, and again as it fills.
_CLUSTER_SPACE = GIB // 4
_ROLES = "/apis/rbac.authorization.k8s.io/v1"
_SERVER_HOSTS = ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"]
_SERVER_ADDRESSES = ["127.0.0.1", "10.96.0.1"]


class ControlPlane:
    """A running cluster, created by `ControlPlane.start()`. As a context manager, it ends with the block."""

    def __init__(
        self,
        programs: Path,
        folder: Path,
        *,
        scheduler: bool,
        kwok: bool,
        controller_manager: bool,
        audit_policy: Path | None,
    ) -> None:
        try:
            from longshore.dev.admin import Admin
            from longshore.dev.certificates import Authority
            from longshore.dev.kubeconfig import write_kubeconfig
        except ModuleNotFoundError as error:
            if error.name != "cryptography":
                raise
            raise UserError(
                "longshore dev needs the package cryptography: pip install 'longshore[dev]'"
            ) from error
        self.folder = private_folder(folder)
        self.kubeconfig = folder / "kubeconfig"
        self._kubectl = programs / "kubectl"
        self._nodes_made: dict[str, int] = {}
        self._port = Port()
        self.server = f"https://127.0.0.1:{self._port.number}"
        authority = Authority(folder)
        self.ca_file = authority.file
        site = components.Site(
            folder=folder,
            programs=programs,
            port=self._port.number,
            ca_file=authority.file,
            server=authority.server("kube-apiserver", hosts=_SERVER_HOSTS, addresses=_SERVER_ADDRESSES),
            tokens=authority.signing_key("service-accounts"),
        )

        def identity(name: str, *, user: str, group: str | None = None) -> Path:
            client = authority.client(name, user=user, group=group)
            return write_kubeconfig(
                folder / f"{name}.kubeconfig", server=self.server, ca_file=authority.file, client=client
            )

        admin = authority.client("admin", user="admin", group="system:masters")
        write_kubeconfig(self.kubeconfig, server=self.server, ca_file=authority.file, client=admin)
        self._admin = Admin(port=self._port.number, ca_file=authority.file, client=admin)

        self.etcd = components.etcd(site)
        self.api_server = components.api_server(
            site, controller_manager=controller_manager, audit_policy=audit_policy, ready=self._admin.ready
        )
        self.audit_log = folder / components.AUDIT_LOG
        self.controller_manager: Component | None = None
        self.scheduler: Component | None = None
        self.kwok: Component | None = None
        if controller_manager:
            config = identity("kube-controller-manager", user="system:kube-controller-manager")
            self.controller_manager = components.controller_manager(site, config, kwok=kwok)
        if scheduler:
            config = identity("kube-scheduler", user="system:kube-scheduler")
            self.scheduler = components.scheduler(site, config)
        if kwok:
            self.kwok = components.kwok(site, identity("kwok", user=components.KWOK_USER))

    @classmethod
    def start(
        cls,
        *,
        nodes: int = 3,
        scheduler: bool = False,
        kwok: bool = True,
        controller_manager: bool = True,
        audit_policy: Path | None = None,
        folder: Path | None = None,
    ) -> Self:
        """Build what is missing, start everything, and return when the API server and the nodes are ready.

        Without KWOK, nodes are created Ready and stay so, but pods bound to them do not run. Without the
        controller manager, there are no default service accounts, and pods do not need them. With an
        `audit_policy` (a file), the API server writes the requests that match it to `audit_log`.
        """
        require_linux()
        programs = build()
        folder = folder or scratch.new_folder()
        require_space(folder, _CLUSTER_SPACE, purpose="a cluster")
        plane = cls(
            programs,
            folder,
            scheduler=scheduler,
            kwok=kwok,
            controller_manager=controller_manager,
            audit_policy=audit_policy,
        )
        try:
            plane._start_components()
            if nodes:
                plane.add_nodes(nodes)
        except BaseException:
            plane._end_processes()  # the folder stays, because its logs show what went wrong
            raise
        return plane

    def stop(self) -> None:
        """End every component and remove the cluster's folder."""
        self._end_processes()
        remove_folder(self.folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def components(self) -> list[Component]:
        """The components in the order in which they were started."""
        parts = [self.etcd, self.api_server, self.controller_manager, self.scheduler, self.kwok]
        return [part for part in parts if part is not None]

    def kubectl(self, *arguments: str, input: str | None = None) -> str:  # noqa: A002 - the name subprocess uses
        """Run kubectl as the administrator and return its output. Raises `KubectlError` if it fails."""
        return kubectl.run(self._kubectl, self.kubeconfig, arguments, stdin=input)

    def get(self, path: str) -> Any:
        """Return the API server's decoded answer to a GET request, without the cost of starting kubectl."""
        return msgspec.json.decode(self._admin.request("GET", path))

    def create(self, path: str, *objects: Mapping[str, Any]) -> None:
        """Create objects by POST to the path of their collection, one after another over one connection."""
        self._admin.create_in_order(path, objects)

    def apply(self, manifest: str | Path) -> None:
        """Apply a manifest, given as text or as the path of a file or folder."""
        apply = ("apply", "--server-side", "--force-conflicts", "-f")
        if isinstance(manifest, Path):
            self.kubectl(*apply, str(manifest))
        else:
            self.kubectl(*apply, "-", input=manifest)

    def add_nodes(
        self,
        count: int,
        *,
        cpu: str = "8",
        memory: str = "32Gi",
        pods: str = "110",
        prefix: str = "node-",
        labels: Mapping[str, str] | None = None,
    ) -> list[str]:
        """Create nodes, wait until they are Ready, and return their names, whose numbers continue."""
        first = self._nodes_made.get(prefix, 0)
        self._nodes_made[prefix] = first + count
        names = [f"{prefix}{number}" for number in range(first, first + count)]
        objects = [
            node_object(name, cpu=cpu, memory=memory, pods=pods, labels=labels or {}, ready=self.kwok is None)
            for name in names
        ]
        self._admin.create_all("/api/v1/nodes", objects)
        self._wait(
            lambda: not not_usable(names, self._admin.request("GET", "/api/v1/nodes?resourceVersion=0")),
            what=f"{count} nodes to be Ready",
            seconds=_SETTLE_SECONDS + count * _SECONDS_PER_NODE,
            pause=_POLL_SECONDS + count * _PAUSE_PER_NODE,
        )
        return names

    def service_account(
        self,
        name: str,
        *,
        namespace: str = "default",
        rules: Sequence[Mapping[str, Any]] | None = None,
        cluster_role: str | None = None,
    ) -> Path:
        """Create a service account with only these rights, and return a kubeconfig for it.

        `rules` are the rules of a new ClusterRole for it; `cluster_role` names an existing one.
        """
        self._admin.apply(
            f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}",
            {
                "apiVersion": "v1",
                "kind": "ServiceAccount",
                "metadata": {"name": name, "namespace": namespace},
            },
        )
        subject = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
        full_name = f"{namespace}:{name}"
        if rules is not None:
            self._grant(full_name, rules, subject)
        if cluster_role is not None:
            self._bind_role(f"{full_name}:{cluster_role}", cluster_role, subject)
        from longshore.dev.kubeconfig import write_kubeconfig

        return write_kubeconfig(
            self.folder / f"{namespace}.{name}.kubeconfig",
            server=self.server,
            ca_file=self.ca_file,
            token=self.token(namespace, name),
        )

    def token(self, namespace: str, name: str, *, seconds: int = 24 * 3600) -> str:
        """Return a token of the service account. The API server requires at least 600 seconds."""
        answer = self._admin.request(
            "POST",
            f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token",
            {
                "apiVersion": "authentication.k8s.io/v1",
                "kind": "TokenRequest",
                "spec": {"expirationSeconds": seconds},
            },
        )
        return str(msgspec.json.decode(answer)["status"]["token"])

    def create_namespace(self, name: str) -> None:
        """Create a namespace and wait until pods can be created in it."""
        self._admin.request(
            "POST",
            "/api/v1/namespaces",
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}},
        )
        if self.controller_manager:
            self._wait_for_default_account(name)

    def delete_namespace(self, name: str) -> None:
        """Start to delete a namespace, without waiting until it is gone."""
        self._admin.request("DELETE", f"/api/v1/namespaces/{name}")

    def _start_components(self) -> None:
        self.etcd.start()
        self.api_server.start()
        self._wait(self._admin.ready, what="the API server to be ready")
        for component in (self.controller_manager, self.scheduler):
            if component:
                component.start()
        if self.kwok:
            subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": components.KWOK_USER}
            self._grant(components.KWOK_USER, components.KWOK_RULES, subject)
            self.kwok.start()
        if self.controller_manager:
            self._wait_for_default_account("default")

    def _grant(self, role: str, rules: Sequence[Mapping[str, Any]], subject: Mapping[str, str]) -> None:
        self._admin.apply(
            f"{_ROLES}/clusterroles/{role}",
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRole",
                "metadata": {"name": role},
                "rules": list(rules),
            },
        )
        self._bind_role(role, role, subject)

    def _bind_role(self, name: str, role: str, subject: Mapping[str, str]) -> None:
        self._admin.apply(
            f"{_ROLES}/clusterrolebindings/{name}",
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRoleBinding",
                "metadata": {"name": name},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
                "subjects": [subject],
            },
        )

    def _wait_for_default_account(self, namespace: str) -> None:
        self._wait(
            lambda: self._admin.exists(f"/api/v1/namespaces/{namespace}/serviceaccounts/default"),
            what=f"the default service account of namespace {namespace}",
        )

    def _wait(
        self,
        condition: Callable[[], bool],
        *,
        what: str,
        seconds: float = _SETTLE_SECONDS,
        pause: float = _POLL_SECONDS,
    ) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            for component in self.components:
                component.require_running()
            if time.monotonic() > deadline:
                raise UserError(f"waited {seconds:.0f} s for {what}; logs: {self.folder}/*.log")
            time.sleep(pause)

    def _end_processes(self) -> None:
        # Clients before servers, or they would fill their logs with connection errors.
        for component in reversed(self.components):
            component.kill()
        self._port.release()
