"""The definitions of triggers and plans: what the API server accepts, refuses, shows and keeps."""

import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
import yaml
from tests.deploy.custom_resources import (
    FOLDER,
    KINDS,
    MERGE,
    PLAN_STATUS,
    TRIGGER_STATUS,
    ask,
    listed,
    manifest,
    plan,
    trigger,
)

from longshore.api import (
    Condition,
    PlanEntry,
    SchedulePlan,
    SchedulePlanSpec,
    SchedulePlanStatus,
    ScheduleTrigger,
    ScheduleTriggerSpec,
    ScheduleTriggerStatus,
    UnplacedPod,
    parse_duration,
)
from longshore.api.pod_set import API_VERSION, BALANCE, MAX_BUDGET, PACK, PLANNING, SCHEDULE
from longshore.dev import ControlPlane
from longshore.kube.errors import ApiError
from longshore.kube.resources import SCHEDULE_PLANS, SCHEDULE_TRIGGERS, Resource

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def schema(plural: str) -> dict[str, Any]:
    definition = yaml.safe_load((FOLDER / f"{plural}.yaml").read_text())
    found: dict[str, Any] = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return found


async def refusal(plane: ControlPlane, namespace: str, resource: Resource[Any], body: Any) -> ApiError:
    with pytest.raises(ApiError) as refused:
        await ask(plane, "POST", resource.path(namespace=namespace), body, dry=True)
    return refused.value


async def test_discovery_lists_both_kinds_with_their_short_names(installed: ControlPlane) -> None:
    found = json.loads(await ask(installed, "GET", f"/apis/{API_VERSION}"))["resources"]
    listed = {each["name"]: each for each in found}
    for plural, kind, short in (
        ("scheduletriggers", "ScheduleTrigger", "st"),
        ("scheduleplans", "SchedulePlan", "sp"),
    ):
        described = {
            key: listed[plural].get(key) for key in ("kind", "singularName", "shortNames", "namespaced")
        }
        assert described == {
            "kind": kind,
            "singularName": kind.lower(),
            "shortNames": [short],
            "namespaced": True,
        }
        assert listed[f"{plural}/status"]["kind"] == kind


# The first columns are those of Pallet, in its order.
COLUMNS = {
    "scheduletriggers": [
        ("Name", 0),
        ("State", 0),
        ("PodSet", 0),
        ("QuietTime", 1),
        ("Age", 0),
        ("Held", 1),
        ("Bound", 1),
        ("FireAt", 1),
    ],
    "scheduleplans": [
        ("Name", 0),
        ("PodSet", 0),
        ("Age", 0),
        ("Plan", 1),
        ("Planned", 1),
        ("Following", 1),
        ("Planner", 1),
        ("Gap", 1),
    ],
}


@pytest.mark.parametrize("resource", [SCHEDULE_TRIGGERS, SCHEDULE_PLANS], ids=lambda each: str(each.plural))
async def test_columns_are_those_of_pallet_followed_by_ours(
    installed: ControlPlane, namespace: str, resource: Resource[Any]
) -> None:
    table = json.loads(await ask(installed, "GET", resource.path(namespace=namespace), accept=TABLE))
    columns = [(each["name"], each["priority"]) for each in table["columnDefinitions"]]
    assert columns == COLUMNS[resource.plural]


async def cells(plane: ControlPlane, namespace: str, resource: Resource[Any]) -> dict[str, Any]:
    path = resource.path(namespace=namespace, name="it")
    table = json.loads(await ask(plane, "GET", path, accept=TABLE))
    names = [each["name"] for each in table["columnDefinitions"]]
    [row] = table["rows"]
    return dict(zip(names, row["cells"], strict=True))


async def test_the_columns_show_objects_that_pallet_wrote(installed: ControlPlane, namespace: str) -> None:
    await ask(installed, "POST", SCHEDULE_TRIGGERS.path(namespace=namespace), trigger())
    shown = await cells(installed, namespace, SCHEDULE_TRIGGERS)
    assert (shown["State"], shown["PodSet"], shown["QuietTime"]) == ("Planning", "planner-podset", "2m0s")
    assert shown["FireAt"] in (None, "")
    await ask(installed, "POST", SCHEDULE_PLANS.path(namespace=namespace), plan({"pod": "p", "node": "n"}))
    shown = await cells(installed, namespace, SCHEDULE_PLANS)
    assert (shown["PodSet"], shown["Plan"]) == ("planner-podset", '[{"node":"n","pod":"p"}]')


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (manifest(SCHEDULE_TRIGGERS), "spec: Required value"),
        (manifest(SCHEDULE_TRIGGERS, spec={}), "spec.state: Required value"),
        (
            trigger(state="Foo"),
            'spec.state: Unsupported value: "Foo": supported values: "Planning", "Schedule"',
        ),
        (trigger(state="planning"), 'spec.state: Unsupported value: "planning"'),
        (
            trigger(objective="Spread"),
            'spec.objective: Unsupported value: "Spread": supported values: "Balance", "Pack"',
        ),
        (trigger(allOrNothing="yes"), "spec.allOrNothing: Invalid value"),
        (trigger(budget=2), "spec.budget: Invalid value"),
        (trigger(budget="1s" * 20), "spec.budget: Too long"),
        *(
            (
                trigger(budget=budget),
                "must be a duration above 0s and at most 10m, such as 300ms, 2s or 1m30s",
            )
            for budget in ("", "soon", "2", "0s", "-1s", "1d", "1 s", "11m", "10m0.1s", "9999999999h")
        ),
        (manifest(SCHEDULE_PLANS), "spec: Required value"),
        (manifest(SCHEDULE_PLANS, spec={}), "spec.plan: Required value"),
        (plan({"node": "n"}), "spec.plan[0].pod: Required value"),
        (plan({"pod": "p", "node": "n"}, {"pod": "p"}), "spec.plan[1].node: Required value"),
        (plan({"pod": "", "node": "n"}), 'spec.plan[0].pod: Invalid value: ""'),
        (plan({"pod": "p", "node": ""}), 'spec.plan[0].node: Invalid value: ""'),
    ],
)
async def test_an_invalid_object_is_refused_with_the_field_and_the_reason(
    installed: ControlPlane, namespace: str, body: dict[str, Any], message: str
) -> None:
    resource = SCHEDULE_TRIGGERS if body["kind"] == "ScheduleTrigger" else SCHEDULE_PLANS
    error = await refusal(installed, namespace, resource, body)
    assert error.status == 422
    assert message in error.message


@pytest.mark.parametrize(
    "spec",
    [
        {"state": PLANNING},
        {"state": SCHEDULE},
        {"state": PLANNING, "objective": BALANCE, "allOrNothing": False},
        {"state": PLANNING, "objective": PACK, "allOrNothing": True},
        *(
            {"state": PLANNING, "budget": text}
            for text in ("1ns", "300ms", ".5s", "+1.s", "1m30s", "10m", "7µs")
        ),
    ],
)
async def test_a_valid_trigger_is_accepted_and_read_back(
    installed: ControlPlane, namespace: str, spec: dict[str, Any]
) -> None:
    await ask(installed, "POST", SCHEDULE_TRIGGERS.path(namespace=namespace), trigger(**spec))
    [found] = await listed(installed, namespace, SCHEDULE_TRIGGERS)
    assert found.spec == msgspec.convert(spec, ScheduleTriggerSpec)
    if "budget" in spec:
        assert found.spec.budget_seconds == parse_duration(spec["budget"])


def test_the_longest_budget_is_the_one_that_the_definition_names() -> None:
    budget = schema("scheduletriggers")["properties"]["spec"]["properties"]["budget"]
    [rule] = budget["x-kubernetes-validations"]
    longest = rule["rule"].partition("<= duration('")[2].partition("'")[0]
    assert parse_duration(longest) == MAX_BUDGET


async def test_fields_that_the_kinds_do_not_have_are_pruned(installed: ControlPlane, namespace: str) -> None:
    body = plan({"pod": "p", "node": "n", "zone": "z"}) | {"status": {"phase": "Done"}, "extra": 1}
    answer = await ask(installed, "POST", SCHEDULE_PLANS.path(namespace=namespace), body)
    found = json.loads(answer)
    assert found["spec"] == {"plan": [{"pod": "p", "node": "n"}]}
    assert "extra" not in found
    assert not found.get("status")


async def test_a_plan_without_entries_is_accepted(installed: ControlPlane, namespace: str) -> None:
    await ask(installed, "POST", SCHEDULE_PLANS.path(namespace=namespace), plan())
    [found] = await listed(installed, namespace, SCHEDULE_PLANS)
    assert found.spec.plan == ()


@pytest.mark.parametrize(
    ("resource", "body", "status"),
    [
        (SCHEDULE_TRIGGERS, trigger(), TRIGGER_STATUS),
        (SCHEDULE_PLANS, plan({"pod": "p", "node": "n"}), PLAN_STATUS),
    ],
    ids=["trigger", "plan"],
)
async def test_a_status_is_written_and_removed_separately_from_the_spec(
    installed: ControlPlane,
    namespace: str,
    resource: Resource[Any],
    body: dict[str, Any],
    status: msgspec.Struct,
) -> None:
    await ask(installed, "POST", resource.path(namespace=namespace), body | {"status": status})
    [created] = await listed(installed, namespace, resource)
    assert created.status == type(status)()

    part = resource.path(namespace=namespace, name="it", subresource="status")
    patch = {"spec": {"state": "Schedule", "plan": []}, "status": status}
    await ask(installed, "PATCH", part, patch, content_type=MERGE)
    [found] = await listed(installed, namespace, resource)
    assert found.status == status
    assert found.spec == created.spec
    assert found.metadata.generation == created.metadata.generation

    await ask(installed, "PATCH", part, {"status": type(status)()}, content_type=MERGE)
    [found] = await listed(installed, namespace, resource)
    assert found.status == type(status)()


async def test_a_status_with_too_many_unplaced_pods_is_refused(
    installed: ControlPlane, namespace: str
) -> None:
    await ask(installed, "POST", SCHEDULE_PLANS.path(namespace=namespace), plan())
    many = SchedulePlanStatus(unplaced=(*PLAN_STATUS.unplaced, UnplacedPod("one-more", "Insufficient cpu")))
    part = SCHEDULE_PLANS.path(namespace=namespace, name="it", subresource="status")
    with pytest.raises(ApiError, match=r"status\.unplaced: Too many: 101: must have at most 100 items"):
        await ask(installed, "PATCH", part, {"status": many}, content_type=MERGE)


def names(struct: type[msgspec.Struct]) -> set[str]:
    return {field.encode_name for field in msgspec.structs.fields(struct)}


@pytest.mark.parametrize(
    ("plural", "path", "struct"),
    [
        ("scheduletriggers", "spec", ScheduleTriggerSpec),
        ("scheduletriggers", "status", ScheduleTriggerStatus),
        ("scheduletriggers", "status.conditions", Condition),
        ("scheduleplans", "spec", SchedulePlanSpec),
        ("scheduleplans", "spec.plan", PlanEntry),
        ("scheduleplans", "status", SchedulePlanStatus),
        ("scheduleplans", "status.unplaced", UnplacedPod),
        ("scheduleplans", "status.conditions", Condition),
        ("scheduletriggers", "", ScheduleTrigger),
        ("scheduleplans", "", SchedulePlan),
    ],
)
def test_structs_have_the_fields_of_the_definitions(
    plural: str, path: str, struct: type[msgspec.Struct]
) -> None:
    part = schema(plural)
    for step in filter(None, path.split(".")):
        part = part["properties"][step]
        part = part.get("items", part)
    assert names(struct) == part["properties"].keys() - {"apiVersion", "kind"}


def undescribed(part: dict[str, Any], path: str) -> Iterator[str]:
    for name, field in part.get("properties", {}).items():
        here = f"{path}.{name}"
        if here != ".metadata" and not field.get("description", "").endswith("."):
            yield here
        yield from undescribed(field.get("items", field), here)


@pytest.mark.parametrize("plural", KINDS)
def test_every_field_has_a_description_in_sentences(plural: str) -> None:
    assert list(undescribed(schema(plural), "")) == []


def test_kubectl_explains_a_field_by_the_short_name_of_its_kind(installed: ControlPlane) -> None:
    message = " ".join(installed.kubectl("explain", "st.spec.budget").split())
    assert "How long to search for a better plan" in message
    assert "KIND: ScheduleTrigger" in message
