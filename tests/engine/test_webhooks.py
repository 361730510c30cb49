"""HTTP extenders during an attempt: the requests to them, and the effect of their answers."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from longshore.api import Change
from longshore.api.meta import ApiObject
from longshore.config import ManagedResource, Webhook, default_configuration
from longshore.engine import (
    Answered,
    Bind,
    Done,
    Engine,
    Evict,
    Failed,
    Instruction,
    Outcome,
    RecordEvent,
    Request,
    SetCondition,
    Succeeded,
)
from longshore.framework.effects import CallWebhook
from longshore.testing import NodeBuilder, PodBuilder, node, pod
from longshore.testing.strategies import choosy_pods, varied_nodes

FILTER = Webhook("http://a/", filter_verb="filter")
BY_NAME = msgspec.structs.replace(FILTER, node_cache_capable=True)
RANK = Webhook("http://a/", prioritize_verb="prioritize", weight=2, node_cache_capable=True)
N1 = node("n1").allocatable(cpu="4", memory="8Gi")
N2 = node("n2").allocatable(cpu="4", memory="8Gi")
N3 = node("n3").allocatable(cpu="4", memory="8Gi")
WEB = pod("web").requests(cpu="1")


class Scripted:
    """An engine with extenders that the test answers for."""

    def __init__(self, *webhooks: Webhook) -> None:
        configuration = msgspec.structs.replace(default_configuration(), webhooks=webhooks)
        self.engine = Engine(configuration)
        self.requests: list[Instruction] = []
        self.now = 0.0

    def add(self, *objects: ApiObject) -> None:
        for obj in objects:
            self.engine.receive(Change(None, obj), now=self.now)

    def advance(self) -> None:
        self.requests += self.engine.advance(now=self.now)

    def calls(self) -> list[Request]:
        """Return the calls of extenders that are not answered yet."""
        self.advance()
        asked = [each for each in self.requests if isinstance(each, Request)]
        found = [request for request in asked if isinstance(request.effect, CallWebhook)]
        self.requests = [each for each in self.requests if each not in found]
        return found

    def asked(self) -> tuple[Request, str, dict[str, Any]]:
        """Return the only call in progress, its verb and its content."""
        (request,) = self.calls()
        assert isinstance(request.effect, CallWebhook)
        return request, request.effect.verb, json.loads(request.effect.body)

    def answer(self, request: Request, content: Any) -> None:
        outcome: Outcome = content if isinstance(content, Failed) else Answered(json.dumps(content).encode())
        self.engine.receive(Done(request.id, outcome), now=self.now)
        self.advance()

    def bound(self) -> dict[str, str]:
        effects = [request.effect for request in self.requests]
        return {effect.name: effect.node for effect in effects if isinstance(effect, Bind)}

    def told(self) -> list[tuple[str, str]]:
        """Return reason and message of the conditions that were written."""
        effects = [request.effect for request in self.requests]
        return [
            (effect.condition.reason, effect.condition.message)
            for effect in effects
            if isinstance(effect, SetCondition)
        ]


def scripted(*webhooks: Webhook, objects: tuple[ApiObject, ...] = (N1, N2, N3, WEB)) -> Scripted:
    script = Scripted(*webhooks)
    script.add(*objects)
    return script


# Filter.


def test_a_filter_gets_the_pod_and_the_nodes_that_passed() -> None:
    full = node("full").allocatable(cpu="100m")
    script = scripted(FILTER, objects=(N1, full, N2, WEB))
    _, verb, said = script.asked()
    assert verb == "filter"
    assert said["Pod"]["metadata"]["name"] == "web"
    assert [item["metadata"]["name"] for item in said["Nodes"]["items"]] == ["n1", "n2"]
    assert said["Nodes"]["items"][0]["status"]["allocatable"]["cpu"] == "4"
    assert said["NodeNames"] is None


def test_a_filter_that_caches_nodes_gets_only_their_names() -> None:
    _, _, said = scripted(BY_NAME).asked()
    assert (said["Nodes"], said["NodeNames"]) == (None, ["n1", "n2", "n3"])


def test_the_pod_goes_to_a_node_that_the_filter_keeps() -> None:
    script = scripted(BY_NAME)
    request, _, _ = script.asked()
    script.answer(request, {"NodeNames": ["n2"], "FailedNodes": {"n1": "no", "n3": "no"}})
    assert script.bound() == {"web": "n2"}


def test_a_filter_answers_with_node_objects() -> None:
    script = scripted(FILTER)
    request, _, _ = script.asked()
    script.answer(request, {"Nodes": {"items": [{"metadata": {"name": "n3", "labels": {"a": "b"}}}]}})
    assert script.bound() == {"web": "n3"}


def test_the_case_of_field_names_does_not_matter() -> None:
    script = scripted(BY_NAME)
    request, _, _ = script.asked()
    script.answer(request, {"nodenames": ["n3"], "failedNodes": None, "error": ""})
    assert script.bound() == {"web": "n3"}


def test_a_second_filter_is_asked_about_the_nodes_that_the_first_left() -> None:
    other = msgspec.structs.replace(BY_NAME, filter_verb="again")
    script = scripted(BY_NAME, other)
    request, _, _ = script.asked()
    script.answer(request, {"NodeNames": ["n1", "n3"]})
    request, verb, said = script.asked()
    assert (verb, said["NodeNames"]) == ("again", ["n1", "n3"])
    script.answer(request, {"NodeNames": ["n3"]})
    assert script.bound() == {"web": "n3"}


def test_nodes_that_the_filter_removed_are_in_the_message() -> None:
    script = scripted(BY_NAME)
    request, _, _ = script.asked()
    script.answer(
        request,
        {
            "NodeNames": [],
            "FailedNodes": {"n1": "too warm", "n2": "too warm"},
            "FailedAndUnresolvableNodes": {"n2": "on fire"},
        },
    )
    # The third was removed without a reason.
    message = (
        "0/3 nodes are available: 1 on fire, 1 too warm. no new claims to deallocate, "
        "preemption: 0/3 nodes are available: "
        "1 No preemption victims found for incoming pod, 2 Preemption is not helpful for scheduling."
    )
    assert script.told() == [("Unschedulable", message)]


def test_a_pod_refused_by_a_filter_is_tried_again_on_any_event() -> None:
    script = scripted(BY_NAME)
    request, _, _ = script.asked()
    script.answer(request, {"NodeNames": []})
    assert script.calls() == []
    script.now = 20.0
    labeled = msgspec.structs.replace(N1, metadata=msgspec.structs.replace(N1.metadata, labels={"a": "b"}))
    script.engine.receive(Change(N1, labeled), now=20.0)
    assert len(script.calls()) == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (Failed("no answer in time"), "no answer in time"),
        ({"Error": "I am broken"}, "I am broken"),
        ({"NodeNames": ["elsewhere"]}, 'claims a filtered node "elsewhere"'),
        ({"NodeNames": "n1"}, "the answer is not valid for an extender"),
        ([], "the answer is not valid for an extender"),
    ],
)
def test_a_filter_that_fails_fails_the_attempt(content: Any, message: str) -> None:
    script = scripted(BY_NAME)
    request, _, _ = script.asked()
    script.answer(request, content)
    ((reason, told),) = script.told()
    assert reason == "SchedulerError"
    assert message in told
    assert script.bound() == {}


def test_the_failure_of_an_ignorable_filter_is_ignored() -> None:
    script = scripted(msgspec.structs.replace(BY_NAME, ignorable=True))
    request, _, _ = script.asked()
    script.answer(request, Failed("refused"))
    assert list(script.bound()) == ["web"]


def test_only_pods_that_request_a_managed_resource_are_sent() -> None:
    manages = msgspec.structs.replace(BY_NAME, managed_resources=(ManagedResource("example.com/gpu"),))
    wants = pod("wants").requests(cpu="1", **{"example.com/gpu": "1"})
    gpus = node("gpus").allocatable(cpu="4", **{"example.com/gpu": "1"})
    script = scripted(manages, objects=(gpus, WEB, wants))
    request, _, said = script.asked()
    assert said["Pod"]["metadata"]["name"] == "wants"
    assert list(script.bound()) == ["web"]
    script.answer(request, {"NodeNames": ["gpus"]})
    assert script.bound() == {"web": "gpus", "wants": "gpus"}


# One decision after the other.


def test_no_other_pod_is_tried_while_an_extender_is_asked() -> None:
    small = node("small").allocatable(cpu="1")
    script = scripted(BY_NAME, objects=(small, WEB, pod("next").requests(cpu="1")))
    request, _, said = script.asked()
    assert said["Pod"]["metadata"]["name"] == "web"
    assert script.calls() == []
    assert script.engine.deadline is None
    script.answer(request, {"NodeNames": ["small"]})
    assert script.bound() == {"web": "small"}
    # The room is taken, so there is no call for the second pod.
    ((_, message),) = script.told()
    assert message.startswith("0/1 nodes are available: 1 Insufficient cpu.")


def test_a_node_deleted_while_an_extender_is_asked_is_removed_afterwards() -> None:
    script = scripted(BY_NAME, objects=(N1, N2, WEB))
    request, _, _ = script.asked()
    script.engine.receive(Change(N2, None), now=0.0)
    assert script.engine.cluster.node_count == 2
    script.answer(request, {"NodeNames": ["n2"]})
    assert script.bound() == {"web": "n2"}
    assert script.engine.cluster.node_count == 1


def test_a_pod_deleted_while_an_extender_is_asked() -> None:
    script = scripted(BY_NAME)
    request, _, _ = script.asked()
    script.engine.receive(Change(WEB, None), now=0.0)
    script.answer(request, {"NodeNames": ["n2"]})
    (bind,) = [r for r in script.requests if isinstance(r.effect, Bind)]
    script.engine.receive(Done(bind.id, Failed("not found")), now=0.0)
    script.advance()
    assert script.engine.settled
    assert script.engine.cluster.node_of(WEB) is None


# Prioritize.


def test_scores_of_an_extender_count_tenfold_multiplied_by_its_weight() -> None:
    """One point of this extender counts 20, more than the lead of the emptiest node."""
    script = scripted(RANK, objects=(N1, N2, pod("there").requests(cpu="500m").on("n1"), WEB))
    request, verb, said = script.asked()
    assert (verb, said["NodeNames"]) == ("prioritize", ["n1", "n2"])
    script.answer(request, [{"Host": "n1", "Score": 1}, {"Host": "n2", "Score": 0}])
    assert script.bound() == {"web": "n1"}


def test_extenders_rank_at_the_same_time_and_one_that_fails_adds_nothing() -> None:
    other = msgspec.structs.replace(RANK, weight=1)
    script = scripted(RANK, other)
    first, second = script.calls()
    script.answer(second, [{"host": "n3", "score": 10}])
    assert script.bound() == {}
    script.answer(first, Failed("no answer in time"))
    assert script.bound() == {"web": "n3"}


def test_a_single_node_is_not_ranked() -> None:
    script = scripted(RANK, objects=(N1, WEB))
    assert script.calls() == []
    assert script.bound() == {"web": "n1"}


# Preempt.

PREEMPT = Webhook("http://a/", preempt_verb="preempt", node_cache_capable=True)
LOW1 = pod("low1").requests(cpu="4").priority(1).on("n1")
LOW2 = pod("low2").requests(cpu="4").priority(2).on("n2")
HIGH = pod("high").requests(cpu="4").priority(9)


def evicted(script: Scripted) -> list[str]:
    return [request.effect.name for request in script.requests if isinstance(request.effect, Evict)]


def test_an_extender_rules_out_the_best_candidate() -> None:
    script = scripted(PREEMPT, objects=(N1, N2, LOW1, LOW2, HIGH))
    request, verb, said = script.asked()
    victims = {
        "n1": {"Pods": [{"UID": LOW1.metadata.uid}], "NumPDBViolations": 0},
        "n2": {"Pods": [{"UID": LOW2.metadata.uid}], "NumPDBViolations": 0},
    }
    assert (verb, said["NodeNameToMetaVictims"], said["NodeNameToVictims"]) == ("preempt", victims, None)
    script.answer(request, {"NodeNameToMetaVictims": {"n2": victims["n2"]}})
    assert evicted(script) == ["low2"]


def test_an_extender_that_caches_no_nodes_gets_complete_victims() -> None:
    whole = msgspec.structs.replace(PREEMPT, node_cache_capable=False)
    _, _, said = scripted(whole, objects=(N1, LOW1, HIGH)).asked()
    (victim,) = said["NodeNameToVictims"]["n1"]["Pods"]
    assert victim["metadata"]["name"] == "low1"
    assert said["NodeNameToMetaVictims"] is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"NodeNameToMetaVictims": {}}, "preemption: no candidate node for preemption"),
        (Failed("refused"), "preemption: refused"),
        ({"NodeNameToMetaVictims": {"n1": {"Pods": []}}}, "expected at least one victim pod on node"),
        ({"NodeNameToMetaVictims": {"n1": {"Pods": [{"UID": "x"}]}}}, "the pod is not found on that node"),
    ],
)
def test_no_pod_is_evicted_unless_the_extender_agrees(content: Any, message: str) -> None:
    script = scripted(PREEMPT, objects=(N1, LOW1, HIGH))
    request, _, _ = script.asked()
    script.answer(request, content)
    ((_, told),) = script.told()
    assert message in told
    assert evicted(script) == []


# Bind.

BINDS = Webhook("http://a/", bind_verb="bind")


def test_an_extender_binds_instead_of_the_plugins() -> None:
    script = scripted(BINDS, objects=(N1, WEB))
    request, verb, said = script.asked()
    wanted = {"PodName": "web", "PodNamespace": "default", "PodUID": WEB.metadata.uid, "Node": "n1"}
    assert (verb, said) == ("bind", wanted)
    script.answer(request, {"Error": ""})
    assert [r.effect.reason for r in script.requests if isinstance(r.effect, RecordEvent)] == ["Scheduled"]
    assert script.bound() == {}


def test_other_pods_are_tried_while_an_extender_binds() -> None:
    script = scripted(BINDS, objects=(N1, WEB, pod("next").requests(cpu="1")))
    assert len(script.calls()) == 2


def test_a_bind_that_an_extender_refuses_is_tried_again() -> None:
    script = scripted(BINDS, objects=(N1, WEB))
    request, _, _ = script.asked()
    script.answer(request, {"Error": "not today"})
    ((reason, message),) = script.told()
    assert (reason, message) == ("SchedulerError", "not today")


def test_an_extenders_answer_was_lost_but_the_watch_shows_the_bind() -> None:
    script = scripted(BINDS, objects=(N1, WEB))
    request, _, _ = script.asked()
    script.engine.receive(Change(WEB, WEB.on("n1")), now=0.0)
    script.answer(request, Failed("no answer in time"))
    assert script.told() == []
    assert script.engine.settled


def test_an_ignorable_binder_that_fails_leaves_the_pod_to_the_plugins() -> None:
    script = scripted(msgspec.structs.replace(BINDS, ignorable=True), objects=(N1, WEB))
    request, _, _ = script.asked()
    script.answer(request, Failed("refused"))
    (bind,) = [r for r in script.requests if isinstance(r.effect, Bind)]
    script.engine.receive(Done(bind.id, Succeeded()), now=0.0)
    assert script.bound() == {"web": "n1"}


# Nominations.


def test_a_nominated_node_is_taken_only_if_the_extender_agrees() -> None:
    promised = pod("web").requests(cpu="1").nominated("n3")
    script = scripted(BY_NAME, objects=(N1, N2, N3, promised))
    request, _, said = script.asked()
    assert said["NodeNames"] == ["n3"]
    script.answer(request, {"NodeNames": []})
    request, _, said = script.asked()
    assert said["NodeNames"] == ["n1", "n2", "n3"]
    script.answer(request, {"NodeNames": ["n1"]})
    assert script.bound() == {"web": "n1"}


# An extender that agrees with everything changes nothing.


def without_calls(script: Scripted) -> list[object]:
    """Return what the engine asks for if extenders accept all nodes and rank none higher."""
    while calls := script.calls():
        for request in calls:
            assert isinstance(request.effect, CallWebhook)
            said = json.loads(request.effect.body)
            if request.effect.verb == "filter":
                script.answer(request, {"NodeNames": said["NodeNames"]})
            elif request.effect.verb == "prioritize":
                script.answer(request, [{"Host": name, "Score": 0} for name in said["NodeNames"]])
            else:
                script.answer(request, {"NodeNameToMetaVictims": said["NodeNameToMetaVictims"]})
    return [request.effect for request in script.requests]


AGREES = Webhook(
    "http://a/",
    filter_verb="filter",
    prioritize_verb="prioritize",
    preempt_verb="preempt",
    weight=1,
    node_cache_capable=True,
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(varied_nodes(), min_size=1, max_size=3, unique_by=lambda each: each.key),
    st.lists(choosy_pods(), min_size=1, max_size=8, unique_by=lambda each: each.key),
    st.tuples(choosy_pods(name="there-0"), choosy_pods(name="there-1")),
)
def test_an_extender_that_agrees_with_everything_changes_nothing(
    around: list[NodeBuilder], waiting: list[PodBuilder], there: tuple[PodBuilder, ...]
) -> None:
    placed = [
        each.priority(-5).on(around[number % len(around)].metadata.name) for number, each in enumerate(there)
    ]
    objects = (*around, *placed, *waiting)
    assert without_calls(scripted(AGREES, objects=objects)) == without_calls(scripted(objects=objects))
