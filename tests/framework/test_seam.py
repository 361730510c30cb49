"""What every cluster promises: the real one, watched or polled, the simulated one and a recorded one alike.

The real API server is the reference: what it answers is written here, and the others answer the same.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Literal, TypeVar

import pytest
from tests.framework.clusters import ECHOES, FAILS, PLAN, REQUEST, Stage, real, recorded, simulated

from longshore.api import Change, Pod, PodCondition, Service
from longshore.api.config_map import ConfigMap
from longshore.api.kept import kept_condition
from longshore.api.meta import ApiObject
from longshore.engine import (
    Answered,
    Bind,
    Conflict,
    CreateObject,
    DeleteObject,
    Evict,
    Failed,
    Gone,
    Nominate,
    Outcome,
    PatchObject,
    RecordEvent,
    Run,
    SetCondition,
    Succeeded,
)
from longshore.framework.effects import CallPlanner, CallWebhook, GetObject, Operation
from longshore.framework.seam import FOLLOWED_KINDS
from longshore.kube.kinds import KINDS

T = TypeVar("T", bound=ApiObject)

UNSCHEDULABLE = PodCondition(type="PodScheduled", status="False", reason="Unschedulable", message="no room")
PREEMPTED = PodCondition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler", message="x")


@pytest.fixture(
    params=[
        "simulated",
        "recorded",
        pytest.param("real", marks=pytest.mark.control_plane),
        pytest.param("polled", marks=pytest.mark.control_plane),
    ]
)
async def stage(request: pytest.FixtureRequest) -> AsyncIterator[Stage]:
    made: AbstractAsyncContextManager[Stage]
    if request.param in ("real", "polled"):
        plane, namespace = map(request.getfixturevalue, ("control_plane", "namespace"))
        made = real(plane, namespace, polled=request.param == "polled")
    else:
        made = {"simulated": simulated, "recorded": recorded}[request.param]()
    async with made as stage:
        yield stage


async def outcome_of(stage: Stage, operation: Operation) -> Outcome:
    """Perform the operation, and prove that it has only one outcome: a later operation has ended as well."""
    outcomes: list[Outcome] = []
    stage.cluster.perform(operation, outcomes.append)
    assert outcomes == [], "there must be no outcome before `perform` has returned"
    await stage.until(lambda: bool(outcomes))
    await something_later(stage)
    [outcome] = outcomes
    return outcome


async def something_later(stage: Stage) -> None:
    later: list[Outcome] = []
    stage.cluster.perform(GetObject(ConfigMap, stage.namespace, "later"), later.append)
    await stage.until(lambda: bool(later))


async def existing(stage: Stage, kind: type[T], name: str) -> T:
    found = await stage.found(kind, name)
    assert found is not None
    return found


async def eventually(stage: Stage, look: Callable[[], Awaitable[bool]]) -> None:
    """Wait until reports have arrived. They have no outcome, so the cluster is read again and again."""
    for _ in range(200):
        if await look():
            return
        await something_later(stage)
    raise AssertionError("it is not so")


# Binds.


async def test_a_bind_assigns_the_pod(stage: Stage) -> None:
    uid = await stage.create_pod("web")
    assert await outcome_of(stage, Bind(stage.namespace, "web", uid, "n1")) == Succeeded()
    assert (await existing(stage, Pod, "web")).spec.node_name == "n1"


async def test_a_bind_of_a_pod_that_does_not_exist(stage: Stage) -> None:
    outcome = await outcome_of(stage, Bind(stage.namespace, "web", "uid", "n1"))
    assert outcome == Gone('pods "web" not found', 404, "NotFound")


async def test_a_bind_of_a_pod_that_has_been_replaced(stage: Stage) -> None:
    uid = await stage.create_pod("web")
    outcome = await outcome_of(stage, Bind(stage.namespace, "web", "first", "n1"))
    key = f"/registry/pods/{stage.namespace}/web"
    assert outcome == Conflict(
        f'Operation cannot be fulfilled on pods "web": StorageError: invalid object, Code: 4, Key: {key}, '
        "ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: first, "
        f"UID in object meta: {uid}",
        409,
        "Conflict",
    )
    assert (await existing(stage, Pod, "web")).spec.node_name == ""


@pytest.mark.parametrize(
    ("state", "problem"),
    [
        ({"gated": True}, "pod web has non-empty .spec.schedulingGates"),
        ({"deleting": True}, "pod web is being deleted, cannot be assigned to a host"),
    ],
    ids=["gated", "deleting"],
)
async def test_a_bind_of_a_pod_that_cannot_be_assigned(
    stage: Stage, state: dict[str, bool], problem: str
) -> None:
    uid = await stage.create_pod("web", **state)
    outcome = await outcome_of(stage, Bind(stage.namespace, "web", uid, "n1"))
    message = f'Operation cannot be fulfilled on pods/binding "web": {problem}'
    assert outcome == Conflict(message, 409, "Conflict")


async def test_a_bind_of_a_pod_that_is_bound_elsewhere(stage: Stage) -> None:
    uid = await stage.create_pod("web")
    await outcome_of(stage, Bind(stage.namespace, "web", uid, "n1"))
    outcome = await outcome_of(stage, Bind(stage.namespace, "web", uid, "n2"))
    message = 'Operation cannot be fulfilled on pods/binding "web": pod web is already assigned to node "n1"'
    assert outcome == Conflict(message, 409, "Conflict")
    assert (await existing(stage, Pod, "web")).spec.node_name == "n1"


# Evictions.


async def test_an_eviction_writes_the_condition_and_deletes_the_pod(stage: Stage) -> None:
    changes = await watched(stage, Pod)
    uid = await stage.create_pod("web")
    await outcome_of(stage, Bind(stage.namespace, "web", uid, "n1"))
    assert await outcome_of(stage, Evict(stage.namespace, "web", uid, PREEMPTED)) == Succeeded()

    def is_ending() -> bool:
        pods = [each.new for each in changes if each.new is not None]
        return any(
            pod.metadata.deletion_timestamp is not None
            and kept_condition(pod.status.conditions, "DisruptionTarget") is not None
            for pod in pods
        )

    await stage.until(is_ending)


async def test_an_eviction_of_a_pod_that_does_not_exist(stage: Stage) -> None:
    outcome = await outcome_of(stage, Evict(stage.namespace, "web", "uid", PREEMPTED))
    assert outcome == Gone('pods "web" not found', 404, "NotFound")


async def test_an_eviction_spares_a_pod_that_took_the_name(stage: Stage) -> None:
    await stage.create_pod("web")
    outcome = await outcome_of(stage, Evict(stage.namespace, "web", "first", PREEMPTED))
    problem = 'metadata.uid: Invalid value: "first": field is immutable'
    assert outcome == Gone(f'Pod "web" is invalid: {problem}', 422, "Invalid")
    assert (await existing(stage, Pod, "web")).metadata.deletion_timestamp is None


# Writes of other objects.


async def test_an_object_is_created(stage: Stage) -> None:
    create = CreateObject(ConfigMap, stage.namespace, "notes", {"data": {"a": "1"}})
    assert await outcome_of(stage, create) == Succeeded()
    assert (await existing(stage, ConfigMap, "notes")).data == {"a": "1"}


async def test_creating_an_object_whose_name_is_taken(stage: Stage) -> None:
    await stage.create_map("notes", a="1")
    create = CreateObject(ConfigMap, stage.namespace, "notes", {"data": {"a": "2"}})
    assert await outcome_of(stage, create) == Conflict(
        'configmaps "notes" already exists', 409, "AlreadyExists"
    )
    assert (await existing(stage, ConfigMap, "notes")).data == {"a": "1"}


async def test_a_patch_is_merged(stage: Stage) -> None:
    await stage.create_map("notes", a="1", b="2")
    patch = {"data": {"b": None, "c": "3"}}
    assert await outcome_of(stage, PatchObject(ConfigMap, stage.namespace, "notes", patch)) == Succeeded()
    assert (await existing(stage, ConfigMap, "notes")).data == {"a": "1", "c": "3"}


async def test_a_patch_is_applied_only_to_the_version_that_it_names(stage: Stage) -> None:
    await stage.create_map("notes", a="1")
    version = (await existing(stage, ConfigMap, "notes")).metadata.resource_version
    patch = PatchObject(
        ConfigMap,
        stage.namespace,
        "notes",
        {"metadata": {"resourceVersion": version}, "data": {"a": "2"}},
    )
    assert await outcome_of(stage, patch) == Succeeded()
    assert await outcome_of(stage, patch.__class__(ConfigMap, stage.namespace, "notes", stale(version))) == (
        Conflict(
            'Operation cannot be fulfilled on configmaps "notes": the object has been modified; '
            "please apply your changes to the latest version and try again",
            409,
            "Conflict",
        )
    )
    assert (await existing(stage, ConfigMap, "notes")).data == {"a": "2"}


def stale(version: str) -> dict[str, Any]:
    return {"metadata": {"resourceVersion": version}, "data": {"a": "3"}}


async def test_a_patch_of_the_status_spares_the_spec_and_the_other_way_round(stage: Stage) -> None:
    await stage.create_pod("web", gated=True)

    def patch(node: str, subresource: Literal["", "status"]) -> PatchObject:
        changed = {"spec": {"schedulingGates": None}, "status": {"nominatedNodeName": node}}
        return PatchObject(Pod, stage.namespace, "web", changed, subresource)

    assert await outcome_of(stage, patch("n1", "status")) == Succeeded()
    pod = await existing(stage, Pod, "web")
    assert (len(pod.spec.scheduling_gates), pod.status.nominated_node_name) == (1, "n1")
    assert await outcome_of(stage, patch("n2", "")) == Succeeded()
    pod = await existing(stage, Pod, "web")
    assert (len(pod.spec.scheduling_gates), pod.status.nominated_node_name) == (0, "n1")


async def test_a_patch_of_an_object_that_does_not_exist(stage: Stage) -> None:
    outcome = await outcome_of(stage, PatchObject(ConfigMap, stage.namespace, "notes", {"data": {"a": "1"}}))
    assert outcome == Gone('configmaps "notes" not found', 404, "NotFound")


async def test_a_patch_spares_an_object_that_took_the_name(stage: Stage) -> None:
    await stage.create_map("notes", a="1")
    patch = {"metadata": {"uid": "first"}, "data": {"a": "2"}}
    outcome = await outcome_of(stage, PatchObject(ConfigMap, stage.namespace, "notes", patch))
    problem = 'metadata.uid: Invalid value: "first": field is immutable'
    assert outcome == Gone(f'ConfigMap "notes" is invalid: {problem}', 422, "Invalid")
    assert (await existing(stage, ConfigMap, "notes")).data == {"a": "1"}


async def test_a_write_that_is_not_valid(stage: Stage) -> None:
    """The messages name the problem. Their wording differs between clusters."""
    outcome = await outcome_of(
        stage, CreateObject(ConfigMap, stage.namespace, "notes", {"data": {"a": {"b": "c"}}})
    )
    assert isinstance(outcome, Failed)
    assert outcome.message
    assert await stage.found(ConfigMap, "notes") is None


async def test_an_object_is_deleted_and_once_is_enough(stage: Stage) -> None:
    uid = await stage.create_map("notes")
    for _ in range(2):
        assert await outcome_of(stage, DeleteObject(ConfigMap, stage.namespace, "notes", uid)) == Succeeded()
        assert await stage.found(ConfigMap, "notes") is None


async def test_a_deletion_spares_an_object_that_took_the_name(stage: Stage) -> None:
    uid = await stage.create_map("notes")
    outcome = await outcome_of(stage, DeleteObject(ConfigMap, stage.namespace, "notes", "first"))
    assert outcome == Conflict(
        'Operation cannot be fulfilled on ConfigMap "notes": the UID in the precondition (first) does not '
        f"match the UID in record ({uid}). The object might have been deleted and then recreated",
        409,
        "Conflict",
    )
    assert (await existing(stage, ConfigMap, "notes")).metadata.uid == uid


async def test_an_object_is_read(stage: Stage) -> None:
    await stage.create_map("notes", a="1")
    outcome = await outcome_of(stage, GetObject(ConfigMap, stage.namespace, "notes"))
    assert outcome == Answered(await existing(stage, ConfigMap, "notes"))


async def test_an_object_that_does_not_exist_cannot_be_read(stage: Stage) -> None:
    outcome = await outcome_of(stage, GetObject(ConfigMap, stage.namespace, "notes"))
    assert outcome == Gone('configmaps "notes" not found', 404, "NotFound")


# What others do for the scheduler.


async def answers() -> str:
    return "done"


async def breaks() -> None:
    raise LookupError("no such disk")


async def test_the_work_of_a_plugin_is_awaited(stage: Stage) -> None:
    assert await outcome_of(stage, Run("Mine", answers())) == Answered("done")


async def test_a_plugin_that_raises_has_failed(stage: Stage) -> None:
    assert await outcome_of(stage, Run("Mine", breaks())) == Failed("LookupError('no such disk')")


async def test_a_webhook_answers(stage: Stage) -> None:
    assert await outcome_of(stage, CallWebhook(ECHOES, "filter", b'{"a": 1}')) == Answered(b'{"a": 1}')


async def test_a_webhook_that_fails(stage: Stage) -> None:
    outcome = await outcome_of(stage, CallWebhook(FAILS, "filter", b"{}"))
    assert isinstance(outcome, Failed)
    assert outcome.message


async def test_a_planner_answers(stage: Stage) -> None:
    assert await outcome_of(stage, CallPlanner(stage.planner, REQUEST, 20.0)) == Answered(PLAN)


async def test_a_planner_that_does_not_exist(stage: Stage) -> None:
    outcome = await outcome_of(stage, CallPlanner(stage.nowhere, REQUEST, 20.0))
    assert isinstance(outcome, Failed)
    assert stage.nowhere in outcome.message


# Reports.


async def test_a_condition_is_reported_with_a_nomination_and_the_nomination_taken_back(stage: Stage) -> None:
    uid = await stage.create_pod("web")
    stage.cluster.report(SetCondition(stage.namespace, "web", uid, UNSCHEDULABLE, "n1"))

    async def is_told() -> bool:
        status = (await existing(stage, Pod, "web")).status
        return status.nominated_node_name == "n1" and "no room" in {
            each.message for each in status.conditions
        }

    await eventually(stage, is_told)
    stage.cluster.report(Nominate(stage.namespace, "web", uid, ""))

    async def is_taken_back() -> bool:
        return (await existing(stage, Pod, "web")).status.nominated_node_name == ""

    await eventually(stage, is_taken_back)


async def test_an_event_is_recorded(stage: Stage) -> None:
    uid = await stage.create_pod("web")
    stage.cluster.report(
        RecordEvent(stage.namespace, "web", uid, "Normal", "Scheduled", "Binding", "assigned to n1")
    )

    async def is_recorded() -> bool:
        return "assigned to n1" in await stage.events()

    await eventually(stage, is_recorded)


async def test_reports_about_a_pod_that_does_not_exist_are_lost_without_notice(stage: Stage) -> None:
    stage.cluster.report(SetCondition(stage.namespace, "web", "uid", UNSCHEDULABLE))
    stage.cluster.report(Nominate(stage.namespace, "web", "uid", "n1"))
    await something_later(stage)
    assert await stage.found(Pod, "web") is None


# Watches.


async def watched(stage: Stage, *kinds: type[ApiObject]) -> list[Change[Any]]:
    """Watch until all existing objects are known. Return the changes in the namespace, now and later."""
    changes: list[Change[Any]] = []
    synced: list[bool] = []

    def note(change: Change[Any]) -> None:
        if change.object.metadata.namespace == stage.namespace:
            changes.append(change)

    stage.cluster.watch(kinds, note, lambda: synced.append(True))
    await stage.until(lambda: bool(synced))
    return changes


def ignore_change(_change: Change[Any]) -> None:
    pass


def steps(changes: list[Change[Any]], name: str) -> list[tuple[str, str]]:
    """The value of `a` before and after each change; `-` where the object did not exist."""

    def value(item: ConfigMap | None) -> str:
        return "-" if item is None else item.data.get("a", "")

    return [(value(each.old), value(each.new)) for each in changes if each.object.metadata.name == name]


async def test_existing_objects_are_reported_before_the_watch_is_synced(stage: Stage) -> None:
    await stage.create_map("first", a="1")
    await stage.create_pod("web")
    changes = await watched(stage, ConfigMap, Pod)
    assert steps(changes, "first") == [("-", "1")]
    assert [(each.old, each.new.metadata.name) for each in changes if isinstance(each.new, Pod)] == [
        (None, "web")
    ]


async def test_a_watch_without_kinds_is_synced(stage: Stage) -> None:
    assert await watched(stage) == []


async def test_changes_of_one_object_come_in_their_order(stage: Stage) -> None:
    changes = await watched(stage, ConfigMap)
    uid = await stage.create_map("notes", a="0")
    for number in range(1, 6):
        await outcome_of(
            stage, PatchObject(ConfigMap, stage.namespace, "notes", {"data": {"a": str(number)}})
        )
    await outcome_of(stage, DeleteObject(ConfigMap, stage.namespace, "notes", uid))
    await stage.until(lambda: bool(changes) and changes[-1].new is None)
    seen = steps(changes, "notes")
    # Versions may be skipped, but each change begins where the last one ended.
    assert [before for before, _ in seen] == ["-", *(after for _, after in seen[:-1])]
    assert [after for _, after in seen if after != "-"] == sorted(
        {after for _, after in seen if after != "-"}
    )
    assert seen[-1] == ("5", "-")


async def test_an_object_that_took_the_name_of_another_is_an_addition(stage: Stage) -> None:
    changes = await watched(stage, ConfigMap)
    await stage.create_map("notes", a="1")
    await stage.until(lambda: bool(steps(changes, "notes")))
    await stage.delete(ConfigMap, "notes")
    await stage.create_map("notes", a="2")
    await stage.until(lambda: len(steps(changes, "notes")) == 3)
    assert steps(changes, "notes") == [("-", "1"), ("1", "-"), ("-", "2")]


async def test_a_watch_reports_only_its_kinds(stage: Stage) -> None:
    pods, maps = await watched(stage, Pod), await watched(stage, ConfigMap)
    await stage.create_pod("web")
    await stage.create_map("notes")
    await stage.until(lambda: bool(pods) and bool(steps(maps, "notes")))
    assert {type(each.object).__name__.removesuffix("Builder") for each in pods} == {"Pod"}
    assert {type(each.object).__name__ for each in maps} == {"ConfigMap"}


async def test_a_watch_that_was_cancelled_at_once_is_never_synced(stage: Stage) -> None:
    """A simulated cluster reports what exists before it returns, so there it is synced already."""
    calls: list[str] = []
    cancels = [
        stage.cluster.watch(kinds, ignore_change, lambda: calls.append("synced"))
        for kinds in ([], [ConfigMap])
    ]
    before = list(calls)
    for cancel in cancels:
        cancel()
    await watched(stage, ConfigMap)
    await something_later(stage)
    assert calls == before


async def test_a_watch_that_is_cancelled_from_its_own_report_reports_nothing_more(stage: Stage) -> None:
    heard: list[Change[Any]] = []

    def hear_one(change: Change[Any]) -> None:
        if change.object.metadata.namespace == stage.namespace:
            heard.append(change)
            cancel()

    cancel = stage.cluster.watch([ConfigMap], hear_one)
    others = await watched(stage, ConfigMap)
    for name in ("first", "second"):
        await stage.create_map(name, a="1")
    await stage.until(lambda: len(steps(others, "first") + steps(others, "second")) == 2)
    assert len(heard) == 1


async def test_a_cancelled_watch_reports_nothing_more(stage: Stage) -> None:
    cancelled: list[Change[Any]] = []
    cancel = stage.cluster.watch([ConfigMap], cancelled.append)
    others = await watched(stage, ConfigMap)
    cancel()
    cancel()
    await stage.create_map("notes", a="1")
    await stage.until(lambda: bool(steps(others, "notes")))
    here = [each for each in cancelled if each.object.metadata.namespace == stage.namespace]
    assert steps(here, "notes") == []


# Cancellation, lost answers, and the end.


async def test_an_operation_that_was_cancelled_has_no_outcome(stage: Stage) -> None:
    outcomes: list[Outcome] = []
    cancel = stage.cluster.perform(GetObject(ConfigMap, stage.namespace, "notes"), outcomes.append)
    cancel()
    cancel()
    await something_later(stage)
    assert outcomes == []


async def test_cancelling_an_operation_that_has_ended_does_nothing(stage: Stage) -> None:
    outcomes: list[Outcome] = []
    create = CreateObject(ConfigMap, stage.namespace, "notes", {})
    cancel = stage.cluster.perform(create, outcomes.append)
    await stage.until(lambda: bool(outcomes))
    cancel()
    await something_later(stage)
    assert outcomes == [Succeeded()]
    assert await stage.found(ConfigMap, "notes") is not None


async def test_a_write_that_was_cancelled_has_no_outcome_and_landed_at_most_once(stage: Stage) -> None:
    changes = await watched(stage, ConfigMap)
    outcomes: list[Outcome] = []
    create = CreateObject(ConfigMap, stage.namespace, "notes", {"data": {"a": "1"}})
    stage.cluster.perform(create, outcomes.append)()
    assert type(await outcome_of(stage, create)) in (Succeeded, Conflict)
    assert outcomes == []
    await stage.until(lambda: bool(steps(changes, "notes")))
    await something_later(stage)
    assert steps(changes, "notes") == [("-", "1")]


async def test_a_bind_whose_answer_is_lost_has_succeeded(stage: Stage) -> None:
    uid = await stage.create_pod("web")
    stage.lose_answer()
    assert await outcome_of(stage, Bind(stage.namespace, "web", uid, "n1")) == Succeeded()
    assert (await existing(stage, Pod, "web")).spec.node_name == "n1"


async def test_a_patch_whose_answer_is_lost_has_succeeded(stage: Stage) -> None:
    await stage.create_map("notes", a="1", b="2")
    version = (await existing(stage, ConfigMap, "notes")).metadata.resource_version
    stage.lose_answer()
    patch = {"metadata": {"resourceVersion": version}, "data": {"a": "2", "b": None}}
    assert await outcome_of(stage, PatchObject(ConfigMap, stage.namespace, "notes", patch)) == Succeeded()
    assert (await existing(stage, ConfigMap, "notes")).data == {"a": "2"}


async def test_a_deletion_whose_answer_is_lost_has_succeeded(stage: Stage) -> None:
    uid = await stage.create_map("notes")
    stage.lose_answer()
    assert await outcome_of(stage, DeleteObject(ConfigMap, stage.namespace, "notes", uid)) == Succeeded()
    assert await stage.found(ConfigMap, "notes") is None


async def test_a_creation_whose_answer_is_lost_has_landed_once_and_has_succeeded(stage: Stage) -> None:
    changes = await watched(stage, ConfigMap)
    stage.lose_answer()
    outcome = await outcome_of(stage, CreateObject(ConfigMap, stage.namespace, "notes", {"data": {"a": "1"}}))
    assert outcome == Succeeded()
    assert (await existing(stage, ConfigMap, "notes")).data == {"a": "1"}
    await stage.until(lambda: bool(steps(changes, "notes")))
    assert steps(changes, "notes") == [("-", "1")]


async def test_a_write_that_is_lost_on_its_way_has_succeeded_only_if_it_was_repeated(stage: Stage) -> None:
    stage.lose_request()
    outcome = await outcome_of(stage, CreateObject(ConfigMap, stage.namespace, "notes", {}))
    landed = await stage.found(ConfigMap, "notes") is not None
    assert (type(outcome), landed) in [(Succeeded, True), (Failed, False)]


async def test_a_closed_cluster_reports_nothing(stage: Stage) -> None:
    changes = await watched(stage, ConfigMap)
    outcomes: list[Outcome] = []
    read = GetObject(ConfigMap, stage.namespace, "notes")
    stage.cluster.perform(read, outcomes.append)
    before = len(changes)
    stage.cluster.close()
    stage.cluster.perform(read, outcomes.append)
    stage.cluster.watch([ConfigMap], changes.append)
    stage.cluster.report(Nominate(stage.namespace, "web", "uid", "n1"))
    await stage.create_map("notes", a="1")
    assert await stage.found(ConfigMap, "notes") is not None
    assert (outcomes, len(changes)) == ([], before)


def test_every_kind_that_schedulers_follow_can_be_watched_in_a_real_cluster() -> None:
    assert set(FOLLOWED_KINDS) < KINDS.keys()
    assert not any(KINDS[kind].optional for kind in FOLLOWED_KINDS)
    assert KINDS[Service].resource.path() == "/api/v1/services"
