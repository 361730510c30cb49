"""What is scheduled in a contest: one kind of node, and pods that are all alike.

The constraints are those of kube-scheduler's own benchmark, scheduler_perf: a hard spread over zones with
room for a skew of five, or a preference for nodes without a pod of the same label.
"""

from typing import Any

from longshore.api.pod_set import POD_SET_LABEL

WORKLOADS = ("basic", "spread", "anti-affinity")
# Like basic, and each has a node of its own by a label of that node; for the static scheduler alone.
PINNED = "pinned"
# Like basic, and all of one pod set.
POD_SET = "pod-set"
ZONES = 10
ZONE = "topology.kubernetes.io/zone"
MAX_SKEW = 5
NODE = {"cpu": "32", "memory": "64Gi", "pods": "110"}
# By its CPUs (100m each) a node would take 320 of these pods, by its memory (128Mi each) 512.
PODS_PER_NODE = 110
_LABELS = {"app": "bench"}


def pod(name: str, *, workload: str, scheduler_name: str) -> dict[str, Any]:
    """A pod as a controller would create it."""
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
