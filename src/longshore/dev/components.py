"""The command line of each component: the only module that knows their flags.

etcd listens on sockets in the cluster's folder, which only the owner may enter. This is as safe as
certificates, and needs no ports. The controller manager, the scheduler, and KWOK serve nothing, so the API
server has the only port of a cluster. All logs and relative paths are in the cluster's folder.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from longshore.dev.component import Component
from longshore.dev.keys import Pair

AUDIT_LOG = "audit.log"

# KWOK renews a lease after a quarter of this time. That is rare enough for thousands of idle nodes.
_NODE_LEASE_SECONDS = 160
# Long enough that no node becomes NotReady when a test stops the API server for a while.
_NODE_GRACE = "10m"
# Without KWOK leases are not renewed, and a node stays as it was created.
_NODE_GRACE_WITHOUT_KWOK = "87600h"


@dataclass(frozen=True, kw_only=True)
class Site:
    """The folder, the programs, the port, and the keys of a cluster."""

    folder: Path
    programs: Path
    port: int
    ca_file: Path
    server: Pair
    tokens: Pair

    def component(
        self, name: str, arguments: list[str], *, ready: Callable[[], bool] | None = None
    ) -> Component:
        return Component(name, self.programs / name, arguments, folder=self.folder, ready=ready)


def etcd(site: Site) -> Component:
    return site.component(
        "etcd",
        [
            "--name=dev",
            "--data-dir=etcd",
            # Relative to the folder: the path of a socket must be shorter than 108 bytes.
            "--listen-client-urls=unix://etcd.sock",
            "--advertise-client-urls=unix://etcd.sock",
            "--listen-peer-urls=unix://etcd-peer.sock",
            "--initial-advertise-peer-urls=unix://etcd-peer.sock",
            "--initial-cluster=dev=unix://etcd-peer.sock",
            "--unsafe-no-fsync",
            f"--quota-backend-bytes={8 << 30}",
            "--log-level=warn",
            "--log-format=console",
        ],
    )


def api_server(
    site: Site, *, controller_manager: bool, audit_policy: Path | None, ready: Callable[[], bool]
) -> Component:
    arguments = [
        "--etcd-servers=unix://etcd.sock",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        f"--secure-port={site.port}",
        "--permit-port-sharing",  # with the socket that holds the port, see ports.py
        "--endpoint-reconciler-type=none",  # a loopback address is not a valid endpoint
        f"--tls-cert-file={site.server.public}",
        f"--tls-private-key-file={site.server.private}",
        f"--client-ca-file={site.ca_file}",
        "--anonymous-auth=false",
        "--authorization-mode=Node,RBAC",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={site.tokens.public}",
        f"--service-account-signing-key-file={site.tokens.private}",
        "--service-cluster-ip-range=10.96.0.0/16",
        "--allow-privileged",
        "--max-requests-inflight=3000",
        "--max-mutating-requests-inflight=3000",
        "--profiling=false",
    ]
    if not controller_manager:
        # Without it, no taint of a Ready node is removed, and no default service account is created.
        arguments.append("--disable-admission-plugins=TaintNodesByCondition,ServiceAccount")
    if audit_policy is not None:
        arguments += [f"--audit-policy-file={audit_policy}", f"--audit-log-path={AUDIT_LOG}"]
    return site.component("kube-apiserver", arguments, ready=ready)


def controller_manager(site: Site, kubeconfig: Path, *, kwok: bool) -> Component:
    return site.component(
        "kube-controller-manager",
        [
            f"--kubeconfig={kubeconfig}",
            "--leader-elect=false",
            "--secure-port=0",
            "--use-service-account-credentials",
            f"--root-ca-file={site.ca_file}",
            f"--service-account-private-key-file={site.tokens.private}",
            f"--node-monitor-grace-period={_NODE_GRACE if kwok else _NODE_GRACE_WITHOUT_KWOK}",
            "--kube-api-qps=500",
            "--kube-api-burst=1000",
            "--profiling=false",
        ],
    )


def scheduler(site: Site, kubeconfig: Path) -> Component:
    return site.component(
        "kube-scheduler",
        [
            f"--kubeconfig={kubeconfig}",
            "--leader-elect=false",
            "--secure-port=0",
            "--kube-api-qps=5000",
            "--kube-api-burst=5000",
        ],
    )


def kwok(site: Site, kubeconfig: Path) -> Component:
    return site.component(
        "kwok",
        [
            f"--kubeconfig={kubeconfig}",
            f"--config={site.programs / 'stages.yaml'}",
            "--manage-all-nodes",
            "--v=WARN",
            f"--node-lease-duration-seconds={_NODE_LEASE_SECONDS}",
        ],
    )


KWOK_USER = "longshore-dev-kwok"
KWOK_RULES = [
    {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]},
    {"apiGroups": [""], "resources": ["nodes/status", "pods/status"], "verbs": ["patch", "update"]},
    {
        "apiGroups": [""],
        "resources": ["pods"],
        "verbs": ["get", "list", "watch", "patch", "update", "delete"],
    },
    {"apiGroups": ["", "events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch", "update"]},
    {
        "apiGroups": ["coordination.k8s.io"],
        "resources": ["leases"],
        "verbs": ["get", "list", "watch", "create", "patch", "update"],
    },
]
