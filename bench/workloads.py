"""The nodes and pods of a contest. All nodes are alike, and all pods are alike.

The constraints are those of kube-scheduler's own benchmark, scheduler_perf: hard spreading over zones with a
maximum skew of five, or a preference for nodes without a pod of the same label.
"""

from typing import Any

from longshore.api.pod_set import POD_SET_LABEL

WORKLOADS = ("basic", "spread", "anti-affinity")
# Like basic, and each pod is pinned to a node by a label of that node. Only for the static scheduler.
PINNED = "pinned"
# Like basic, and all pods are in one pod set.
POD_SET = "pod-set"
ZONES = 10
ZONE = "topology.kubernetes.io/zone"
MAX_SKEW = 5
NODE = {"cpu": "32", "memory": "64Gi", "pods": "110"}
# The limit is the number of pods: the CPU of a node is enough for 320 of these pods, its memory for 512.
PODS_PER_NODE = 110
_LABELS = {"app": "bench"}


def pod(name: str, *, workload: str, scheduler_name: str) -> dict[str, Any]:
    """Return a pod as a controller creates it."""
    resources = {"requests": {"cpu": "100m", "memory": "128Mi"}}
    spec: dict[str, Any] = {
        "schedulerName": scheduler_name,
        "containers": [{"name": "pause", "image": "registry.k8s.io/pause:3.10", "resources": resources}],
    }
    if workload == "spread":
        spec["topologySpreadConstraints"] = [
            {
                "maxSkew": MAX_SKEW,
                "topologyKey": ZONE,
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": _LABELS},
            }
        ]
    elif workload == "anti-affinity":
        apart = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": _LABELS}}
        preferred = [{"weight": 100, "podAffinityTerm": apart}]
        spec["affinity"] = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    labels = {**_LABELS, POD_SET_LABEL: POD_SET} if workload == POD_SET else _LABELS
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": spec}
