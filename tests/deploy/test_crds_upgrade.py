"""The upgrade from Pallet's definitions of triggers and plans to ours. Existing objects keep working."""

import asyncio
import json
import time
from typing import Any

import msgspec
import yaml
from tests.deploy.custom_resources import (
    KINDS,
    LABELS,
    MERGE,
    PLAN_STATUS,
    TRIGGER_STATUS,
    ask,
    install,
    listed,
    manifest,
    wait_until_served,
)

from longshore.dev import ControlPlane
from longshore.dev.fixtures import OwnCluster
from longshore.kube.resources import SCHEDULE_PLANS, SCHEDULE_TRIGGERS, Resource


def pallets_own(
    plural: str, short: str, spec: dict[str, Any], columns: list[dict[str, Any]]
) -> dict[str, Any]:
    """Return a definition as Pallet installs it. Its status has no fields."""
    kind = KINDS[plural]
    properties = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
        "spec": {"type": "object", "required": list(spec), "properties": spec},
        "status": {"type": "object"},
    }
    version = {
        "name": "v1alpha1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "additionalPrinterColumns": columns,
        "schema": {"openAPIV3Schema": {"type": "object", "required": ["spec"], "properties": properties}},
    }
    named = {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.planner.ciena.io"},
        "spec": {
            "group": "planner.ciena.io",
            "scope": "Namespaced",
            "names": named | {"shortNames": [short]},
            "versions": [version],
        },
    }


TEXT = {"type": "string"}
AGE = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}
PALLET = [
    pallets_own(
        "scheduletriggers",
        "st",
        {"state": {"type": "string", "enum": ["Planning", "Schedule"]}},
        [{"name": "State", "type": "string", "jsonPath": ".spec.state"}, AGE],
    ),
    pallets_own(
        "scheduleplans",
        "sp",
        {
            "plan": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["node", "pod"],
                    "properties": {"node": TEXT, "pod": TEXT},
                },
            }
        },
        [AGE, {"name": "Plan", "type": "string", "jsonPath": ".spec.plan", "priority": 1}],
    ),
]


def everything(plane: ControlPlane) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(plane.kubectl("get", "st,sp", "-A", "-o", "json"))["items"]
    return found


async def write_until_kept(
    plane: ControlPlane, resource: Resource[Any], name: str, status: msgspec.Struct
) -> None:
    """Write until the API server uses the new definition. Before, it prunes fields that the old one lacks."""
    part = resource.path(namespace="default", name=name, subresource="status")
    deadline = time.monotonic() + 30
    while True:
        await ask(plane, "PATCH", part, {"status": status}, content_type=MERGE)
        [found] = [each for each in await listed(plane, "default", resource) if each.metadata.name == name]
        if found.status == status:
            return
        assert time.monotonic() < deadline, "the status is still pruned"
        await asyncio.sleep(0.1)


async def test_nothing_is_lost_when_the_definitions_of_pallet_are_replaced(own_cluster: OwnCluster) -> None:
    plane = own_cluster(nodes=0, kwok=False, controller_manager=False)
    plane.kubectl("apply", "-f", "-", input=yaml.safe_dump_all(PALLET))
    wait_until_served(plane)
    triggers, plans = SCHEDULE_TRIGGERS.path(namespace="default"), SCHEDULE_PLANS.path(namespace="default")
    await ask(plane, "POST", triggers, manifest(SCHEDULE_TRIGGERS, "held", spec={"state": "Planning"}))
    await ask(plane, "POST", triggers, manifest(SCHEDULE_TRIGGERS, "gone", spec={"state": "Schedule"}))
    entries = [{"pod": f"p{number}", "node": "n1"} for number in range(3)]
    await ask(plane, "POST", plans, manifest(SCHEDULE_PLANS, "planned", spec={"plan": entries}))
    before = everything(plane)

    install(plane)
    assert everything(plane) == before

    await write_until_kept(plane, SCHEDULE_TRIGGERS, "held", TRIGGER_STATUS)
    await write_until_kept(plane, SCHEDULE_PLANS, "planned", PLAN_STATUS)
    after = everything(plane)
    assert [each["spec"] for each in after] == [each["spec"] for each in before]
    assert [each["metadata"]["labels"] for each in after] == [LABELS] * 3
    released = {"spec": {"state": "Schedule"}}
    await ask(plane, "PATCH", f"{triggers}/held", released, content_type=MERGE)
    states = [each.spec.state for each in await listed(plane, "default", SCHEDULE_TRIGGERS)]
    assert states == ["Schedule", "Schedule"]
