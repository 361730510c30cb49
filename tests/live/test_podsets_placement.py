"""The nodes of a set on a real cluster: what the plan takes into account, and when it is made again."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.live.pod_sets import (
    SCHEDULE,
    World,
    add_nodes,
    deployment,
    member,
    members,
    plan,
    trigger,
    world,
)
from tests.live.pods import manifest
from tests.live.processes import Running
from tests.waiting import eventually_async

from longshore.dev import ControlPlane
from longshore.kube.errors import ApiError
from longshore.kube.resources import NODES, PODS

pytestmark = pytest.mark.control_plane

EXAMPLES = Path(__file__).parents[2] / "examples"
# The set of the examples.
EXAMPLE_SET = "planner-podset"

Change = Callable[[World, str], Awaitable[None]]


# The planned node no longer fits.


async def deleted(here: World, node: str) -> None:
    await here.client.request("DELETE", NODES.path(name=node))


async def cordoned(here: World, node: str) -> None:
    await here.patch("Node", node, {"spec": {"unschedulable": True}})


async def tainted(here: World, node: str) -> None:
    await here.patch("Node", node, {"spec": {"taints": [{"key": "away", "effect": "NoSchedule"}]}})


async def filled(here: World, node: str) -> None:
    load = manifest("load", cpu="3950m", scheduler="nobody")
    load["spec"]["nodeName"] = node
    await here.create(load)


async def unlabeled(here: World, node: str) -> None:
    await here.label("Node", node, "pool", None)


@pytest.mark.parametrize("change", [deleted, cordoned, tainted, filled, unlabeled], ids=lambda c: c.__name__)
async def test_a_pod_is_planned_again_when_its_planned_node_no_longer_fits(
    here: World, change: Change
) -> None:
    first = here.nodes[0]
    await here.create(trigger(), *members(2), plan(here.namespace, {"pod-0": first, "pod-1": first}))
    await here.until_held(2)
    await change(here, first)
    await here.until_the_scheduler_knows_all()
    await here.release()
    await here.until(lambda: {"pod-0", "pod-1"} <= here.placed.keys())
    placed = {name: node for name, node in here.placed.items() if name != "load"}
    assert first not in placed.values()
    await here.until(lambda: here.entries() == placed)
    await here.until(lambda: here.plan_condition("PlannedAgain")[0] == "True")
    assert f"because {first} no longer fits pod-" in here.plan_condition("PlannedAgain")[1]


# Room.


async def test_pods_that_fit_go_and_the_others_wait_for_room(here: World) -> None:
    await here.create(trigger(), *members(2), member("big", cpu="100"))
    await here.until_held(3)
    await here.release()
    await here.until_placed(2)
    await here.until(lambda: here.condition("big")[0] == "Unschedulable")
    assert "Insufficient cpu" in here.condition("big")[1]
    await here.until_plan_tells_the_truth()
    found = here.plan()
    assert found is not None
    await here.until(
        lambda: [each.pod for each in here.plans[found.metadata.name].status.unplaced] == ["big"]
    )
    [roomy] = await add_nodes(here, 1, cpu="128", memory="256Gi")
    await here.until_placed(3)
    assert here.placed["big"] == roomy
    await here.until_plan_tells_the_truth()


async def test_a_plan_is_feasible_as_it_is_first_stored(here: World) -> None:
    await here.create(trigger(), *members(6, cpu="2"))
    await here.until_held(6)
    await here.release()
    await here.until_placed(6)
    assert here.stored_plans() == [here.placed]
    assert Counter(here.placed.values()) == dict.fromkeys(here.nodes, 2)


async def test_a_pod_too_many_waits_and_no_node_is_overfilled(here: World) -> None:
    await here.create(trigger(), *members(7, cpu="2"))
    await here.until_held(7)
    await here.release()
    await here.until_placed(6)
    await here.until(lambda: sum(here.condition(name)[0] == "Unschedulable" for name in here.pods) == 1)
    assert Counter(here.placed.values()) == dict.fromkeys(here.nodes, 2)


async def test_two_sets_that_are_released_together_share_the_room(here: World) -> None:
    for podset in ("one", "two"):
        await here.create(trigger(podset, podset=podset))
        await here.create(*(member(f"{podset}-{n}", podset=podset, cpu="1") for n in range(6)))
    await here.until_held(12)
    await asyncio.gather(here.release("one"), here.release("two"))
    await here.until_placed(12)
    assert Counter(here.placed.values()) == dict.fromkeys(here.nodes, 4)
    assert here.entries("one") | here.entries("two") == here.placed


# Apart.


def anti(name: str, other: str) -> dict[str, Any]:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": other}}}
    made = member(
        name,
        affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}},
    )
    made["metadata"]["labels"]["app"] = name
    return made


async def apply(here: World, file: str) -> None:
    await asyncio.to_thread(here.plane.kubectl, "apply", "-n", here.namespace, "-f", str(EXAMPLES / file))


async def test_the_example_with_required_anti_affinity_gets_two_nodes(here: World) -> None:
    await here.create(trigger(podset=EXAMPLE_SET, state=SCHEDULE))
    await apply(here, "antiaffinity_deployment.yaml")
    await here.until_placed(2)
    assert len(set(here.placed.values())) == 2
    await here.until_plan_tells_the_truth(podset=EXAMPLE_SET)


async def test_the_example_with_preferred_anti_affinity_gets_two_nodes(here: World) -> None:
    await here.create(trigger(podset=EXAMPLE_SET))
    await apply(here, "antiaffinity_deployment_weighted.yaml")
    await here.until_held(2)
    await here.release()
    await here.until_placed(2)
    assert len(set(here.placed.values())) == 2
    await here.until_plan_tells_the_truth(podset=EXAMPLE_SET)


@pytest.mark.parametrize(
    ("file", "fit"), [("antiaffinity_deployment.yaml", 1), ("antiaffinity_deployment_weighted.yaml", 2)]
)
async def test_the_examples_on_a_single_node(
    sets_plane: ControlPlane, sets_scheduler: Running, sets_namespace: str, file: str, fit: int
) -> None:
    async with world(sets_plane, sets_namespace, nodes=1) as here:
        await here.create(trigger(podset=EXAMPLE_SET, state=SCHEDULE))
        await apply(here, file)
        await here.until_placed(fit)
        waiting = 2 - fit
        await here.until(
            lambda: sum(here.condition(name)[0] == "Unschedulable" for name in here.pods) == waiting
        )
        await here.until_plan_tells_the_truth(podset=EXAMPLE_SET)


async def test_anti_affinity_of_one_pod_keeps_the_other_away_too(
    sets_plane: ControlPlane, sets_scheduler: Running, sets_namespace: str
) -> None:
    async with world(sets_plane, sets_namespace, nodes=2) as here:
        await here.create(trigger(), anti("shy", "loud"), member("loud"))
        await here.label("Pod", "loud", "app", "loud")
        await here.until_held(2)
        await here.release()
        await here.until_placed(2)
        assert len(set(here.placed.values())) == 2


async def test_replicas_of_a_deployment_spread_and_surplus_ones_are_bound_too(
    here: World,
) -> None:
    apply = ("apply", "-n", here.namespace, "-f", "-")
    await here.create(trigger())
    await asyncio.to_thread(here.plane.kubectl, *apply, input=deployment("web", 3))
    await here.until_held(3)
    await here.release()
    await here.until_placed(3)
    assert set(here.placed.values()) == set(here.nodes)
    await asyncio.to_thread(here.plane.kubectl, *apply, input=deployment("web", 5))
    await here.until_placed(5)
    await here.until_plan_tells_the_truth()


async def test_pods_without_an_owner_may_share_a_node(
    sets_plane: ControlPlane, sets_scheduler: Running, sets_namespace: str
) -> None:
    async with world(sets_plane, sets_namespace, nodes=1) as here:
        await here.create(trigger(state=SCHEDULE), *members(2))
        await here.until_placed(2)
        await here.until_plan_tells_the_truth()


# Refused binds.


def no_binds_to(node: str, namespace: str) -> str:
    return f"""
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {{name: {namespace}}}
spec:
  matchConstraints:
    namespaceSelector: {{matchLabels: {{kubernetes.io/metadata.name: {namespace}}}}}
    resourceRules:
    - {{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods/binding]}}
  validations:
  - {{expression: "object.target.name != '{node}'", message: not there}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {{name: {namespace}}}
spec: {{policyName: {namespace}, validationActions: [Deny]}}
"""


async def until_binds_are_denied(here: World, node: str) -> None:
    """Wait until the API server applies the policy: dry runs of a bind to the node show it."""
    await here.create(manifest("refused", scheduler="nobody"))
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "refused"}, "target": target}
    path = PODS.path(namespace=here.namespace, name="refused", subresource="binding")

    async def answer() -> str:
        try:
            await here.client.request("POST", f"{path}?dryRun=All", body=msgspec.json.encode(binding))
        except ApiError as error:
            return str(error)
        return ""

    await eventually_async(answer, lambda text: "not there" in text)
    await here.delete("Pod", "refused")
    await here.until(lambda: "refused" not in here.pods)


async def test_a_refused_bind_is_tried_again_until_the_plan_is_true(
    here: World, sets_scheduler: Running
) -> None:
    first = here.nodes[0]
    await asyncio.to_thread(here.plane.apply, no_binds_to(first, here.namespace))
    await until_binds_are_denied(here, first)
    await here.create(trigger(), *members(2), plan(here.namespace, {"pod-0": first, "pod-1": here.nodes[1]}))
    await here.until_held(2)
    await here.release()
    await here.until_placed(1)
    await asyncio.to_thread(sets_scheduler.wait_for, "pod not bound")
    for kind in ("validatingadmissionpolicybinding", "validatingadmissionpolicy"):
        await asyncio.to_thread(here.plane.kubectl, "delete", kind, here.namespace)
    await here.until_placed(2, within=20)
    await here.until_plan_tells_the_truth()
