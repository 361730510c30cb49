"""The changes and warnings of a pin, without a cluster."""

import pytest

from longshore.api import Node, Pod
from longshore.ask.pin_plan import PinOptions, PinPlan, PinRequest, plan_pins
from longshore.errors import UserError
from longshore.pin.labels import legacy_key, pin_key
from longshore.testing import node, pod

KEY = pin_key("static", "shop", "web-0")
WEB = pod("web-0", namespace="shop").scheduler("static").owner("StatefulSet", "web")


def planned(
    now: Pod | None,
    *nodes: Node,
    to: str = "n1",
    name: str = "web-0",
    scheduler: str | None = None,
    force: bool = False,
    also: bool = False,
) -> PinPlan:
    options = PinOptions(scheduler=scheduler, force=force, also=also)
    by_name = {each.metadata.name: each for each in nodes or (node("n1"), node("n2"))}
    return plan_pins([PinRequest(name, to, now)], by_name, namespace="shop", options=options)


def labeled(name: str, value: str = "", *, key: str = KEY) -> Node:
    return node(name).labels(**{key: value})


def the_warning(plan: PinPlan) -> str:
    (warning,) = plan.warnings
    return warning


def test_a_pin_without_problems_has_no_warnings() -> None:
    found = planned(WEB)
    assert found.changes == {"n1": {KEY: ""}}
    assert found.warnings == ()


def test_a_pod_that_runs_where_it_is_pinned_is_no_reason_to_warn() -> None:
    assert planned(WEB.on("n1").phase("Running")).warnings == ()


def test_other_nodes_lose_the_label() -> None:
    found = planned(WEB, node("n1"), labeled("n2"), labeled("n3", "whatever"))
    assert found.changes == {"n1": {KEY: ""}, "n2": {KEY: None}, "n3": {KEY: None}}
    assert found.pins[0].taken_from == ("n2", "n3")


def test_other_nodes_keep_the_label_if_asked() -> None:
    found = planned(WEB, node("n1"), labeled("n2"), also=True)
    assert found.changes == {"n1": {KEY: ""}}
    assert (found.pins[0].taken_from, found.pins[0].also_on) == ((), ("n2",))
    assert found.warnings == ()


def test_a_label_that_exists_already_is_not_written() -> None:
    found = planned(WEB, labeled("n1"), node("n2"))
    assert found.changes == {}
    assert not found.pins[0].changed


def test_labels_of_other_pods_schedulers_and_namespaces_stay() -> None:
    keys = [
        pin_key("static", "shop", "web-1"),
        pin_key("other", "shop", "web-0"),
        pin_key("static", "bar", "web-0"),
    ]
    found = planned(WEB, node("n1"), node("n2").labels(**dict.fromkeys(keys, "")))
    assert list(found.changes) == ["n1"]


def test_force_is_the_value() -> None:
    assert planned(WEB, labeled("n1"), force=True).changes == {"n1": {KEY: "force"}}


def test_losing_force_is_a_warning() -> None:
    found = planned(WEB, labeled("n1", "force"))
    assert found.changes == {"n1": {KEY: ""}}
    assert "was pinned to n1 by force, and no longer is" in the_warning(found)


def test_a_label_without_force_has_no_effect_next_to_one_with_force() -> None:
    found = planned(WEB, node("n1"), labeled("n2", "force"), also=True)
    assert "goes to n2 and not to n1" in the_warning(found)


def test_force_overrides_labels_without_it() -> None:
    found = planned(WEB, node("n1"), labeled("n2"), labeled("n3", "force"), also=True, force=True)
    assert "no longer goes to n2: " in the_warning(found)


@pytest.mark.parametrize(
    ("now", "asked", "expected"),
    [
        (WEB, None, "static"),
        (WEB.scheduler("mine.eu"), None, "mine.eu"),
        (WEB.scheduler("default-scheduler"), None, "rfcustom"),
        (None, None, "rfcustom"),
        (WEB, "other", "other"),
        (None, "other", "other"),
    ],
)
def test_which_scheduler_is_meant(now: Pod | None, asked: str | None, expected: str) -> None:
    assert planned(now, scheduler=asked).pins[0].scheduler == expected


def test_a_pod_of_another_scheduler_is_a_warning() -> None:
    warning = the_warning(planned(WEB.scheduler("default-scheduler"), scheduler="static"))
    assert "schedulerName default-scheduler" in warning
    assert "scheduler static ignores them" in warning


def test_another_scheduler_is_one_warning_for_all_pods_of_a_set() -> None:
    other = WEB.scheduler("other")
    requests = [PinRequest("web-0", "n1", other), PinRequest("web-1", "n1", other)]
    found = plan_pins(requests, {"n1": node("n1")}, namespace="shop", options=PinOptions(scheduler="static"))
    assert len(found.pins) == 2
    assert the_warning(found).startswith("pods of StatefulSet web have schedulerName other")


def test_a_pod_that_runs_elsewhere_moves_when_it_is_deleted() -> None:
    warning = the_warning(planned(WEB.on("n2").phase("Running")))
    assert warning == (
        "shop/web-0 runs on n2 until it is deleted; to move it to n1, run kubectl delete pod web-0 -n shop"
    )


def test_a_pod_that_is_being_deleted_need_not_be_deleted() -> None:
    assert planned(WEB.on("n2").phase("Running").deleting()).warnings == ()


def test_a_pod_that_has_ended_runs_nowhere() -> None:
    found = planned(WEB.on("n2").phase("Failed"))
    assert (found.pins[0].exists, found.pins[0].runs_on, found.warnings) == (True, "", ())


def test_a_pod_without_a_controller_is_a_warning() -> None:
    alone = pod("web-0", namespace="shop").scheduler("static").on("n2").phase("Running")
    assert "no controller creates it again" in the_warning(planned(alone))


def test_a_pod_whose_controller_renames_it_is_a_warning() -> None:
    replica = pod("web-0", namespace="shop").scheduler("static").owner("ReplicaSet", "web").on("n2")
    assert "will not be created again with this name" in the_warning(planned(replica))


@pytest.mark.parametrize(
    ("to", "force", "words"),
    [
        (node("n1").unschedulable(), False, "is cordoned: pods wait until kubectl uncordon n1"),
        (node("n1").unschedulable(), True, "is cordoned: with --force, pods are bound there anyway"),
        (node("n1").not_ready(), False, "is not ready: pods wait until it is"),
        (node("n1").not_ready(), True, "is not ready: with --force, pods are bound there anyway"),
    ],
)
def test_a_node_that_accepts_no_pods_is_a_warning(to: Node, *, force: bool, words: str) -> None:
    found = planned(WEB, to, force=force)
    assert words in the_warning(found)
    assert list(found.changes) == ["n1"]


def test_an_older_label_on_another_node_is_a_warning_and_stays() -> None:
    older = legacy_key("static", "web-0")
    found = planned(WEB, node("n1"), labeled("n2", key=older))
    assert list(found.changes) == ["n1"]
    assert the_warning(found) == f"{older} on n2 has no effect on shop/web-0: this label takes precedence"


def test_the_pin_of_another_pod_that_looks_older_is_no_warning() -> None:
    """Return the pins of web-0 in namespace eu, for the scheduler `mine`."""
    found = planned(WEB.scheduler("mine.eu"), node("n1"), labeled("n2", key="rf.scheduler.mine.eu/web-0"))
    assert found.warnings == ()


@pytest.mark.parametrize(
    ("to", "words"),
    [
        ("workr-1", "node workr-1 does not exist: did you mean worker-1"),
        ("elsewhere", "node elsewhere does not exist: kubectl get nodes lists the nodes"),
    ],
)
def test_a_node_that_does_not_exist_is_an_error(to: str, words: str) -> None:
    with pytest.raises(UserError, match=words):
        planned(WEB, node("worker-1"), node("worker-2"), to=to)


@pytest.mark.parametrize(
    ("name", "scheduler", "words"),
    [
        ("w" * 64, "static", "the pod's name has 64 characters"),
        ("web-0", "", "the scheduler name '' cannot be part of a label"),
        ("web-0", "My_Own", "the scheduler name 'My_Own' cannot be part of a label"),
    ],
)
def test_a_name_that_cannot_be_in_a_label_is_an_error(name: str, scheduler: str, words: str) -> None:
    with pytest.raises(UserError, match=words):
        planned(None, name=name, scheduler=scheduler)
