"""The plan as an object of the API server: what is written, and when it may go.

It belongs to the controllers of its pods, so that it goes with the last of them even while no scheduler runs.
"""

from collections.abc import Generator, Iterable, Mapping
from typing import Any

from longshore.api import Pod
from longshore.api.pod_set import POD_SET_LABEL, SchedulePlan
from longshore.framework.effects import Ask, CreateObject, DeleteObject, Outcome, PatchObject
from longshore.podset.plan_entries import SetPlan, annotations

# With more owners than this the list is left out: the plan still goes with the last pod, by our hand.
_MOST_OWNERS = 50


def store(plan: SetPlan, entries: Mapping[str, str]) -> Generator[Ask, Outcome, Outcome]:
    """Create, replace or delete the plan, so that it has these entries."""
    podset = plan.podset
    stored, name = podset.plan, podset.plan_name
    if not entries:
        if stored is None:
            raise ValueError("there is nothing to store")
        return (yield DeleteObject(SchedulePlan, podset.namespace, name, stored.metadata.uid))
    meta: dict[str, Any] = {
        "labels": {POD_SET_LABEL: podset.name},
        "annotations": annotations(entries, plan.awaited(entries)),
        "ownerReferences": _owners([*podset.pending.values(), *podset.bound.values()]),
    }
    body = {"metadata": meta, "spec": {"plan": [{"pod": pod, "node": node} for pod, node in entries.items()]}}
    if stored is None:
        return (yield CreateObject(SchedulePlan, podset.namespace, name, body))
    meta["resourceVersion"] = stored.metadata.resource_version
    return (yield PatchObject(SchedulePlan, podset.namespace, name, body))


def _owners(pods: Iterable[Pod]) -> list[dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for pod in pods:
        controller, meta = pod.metadata.controller, pod.metadata
        if controller is None:
            owner = {"apiVersion": "v1", "kind": "Pod", "name": meta.name, "uid": meta.uid}
        else:
            owner = {
                "apiVersion": controller.api_version,
                "kind": controller.kind,
                "name": controller.name,
                "uid": controller.uid,
            }
        found[owner["uid"]] = owner
        if len(found) > _MOST_OWNERS:
            return []
    return list(found.values())
