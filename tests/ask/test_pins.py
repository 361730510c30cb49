"""Pins, parsed from labels that any client may have written, without a cluster."""

from longshore.api import Node, Pod
from longshore.ask.pins import ListedPin, labels_of, listed_pins
from longshore.testing import node, pod

NEW = "rf.scheduler.static.shop/web-0"
OLD = "rf.scheduler.static/web-0"
WEB = pod("web-0", namespace="shop").scheduler("static").phase("Running")


def labeled(name: str, **labels: str) -> Node:
    return node(name).labels(**labels)


def listed(*things: Node | Pod, namespace: str = "", scheduler: str | None = None) -> tuple[ListedPin, ...]:
    nodes = [each for each in things if isinstance(each, Node)]
    pods = [each for each in things if isinstance(each, Pod)]
    return listed_pins(labels_of(nodes), pods, namespace=namespace, scheduler=scheduler)


def the_one(*things: Node | Pod) -> ListedPin:
    (entry,) = listed(*things)
    return entry


def test_a_pod_on_the_node_of_its_pin() -> None:
    entry = the_one(labeled("n1", **{NEW: "whatever"}), WEB.on("n1"))
    assert (entry.scheduler, entry.namespace, entry.pod) == ("static", "shop", "web-0")
    assert [(each.name, each.force) for each in entry.nodes] == [("n1", False)]
    assert (entry.runs_on, entry.agrees, entry.older, entry.notes) == ("n1", True, False, ())


def test_a_pod_that_is_elsewhere() -> None:
    entry = the_one(labeled("n1", **{NEW: ""}), WEB.on("n2"))
    assert (entry.runs_on, entry.agrees) == ("n2", False)


def test_a_pod_that_is_on_one_of_its_nodes() -> None:
    entry = the_one(labeled("n1", **{NEW: ""}), labeled("n2", **{NEW: ""}), WEB.on("n2"))
    assert ([each.name for each in entry.nodes], entry.agrees) == (["n1", "n2"], True)


def test_a_pod_that_is_on_a_labeled_node_and_forced_to_another() -> None:
    entry = the_one(labeled("n1", **{NEW: "force"}), labeled("n2", **{NEW: ""}), WEB.on("n2"))
    assert [(each.name, each.force) for each in entry.nodes] == [("n1", True), ("n2", False)]
    assert entry.agrees is False


def test_a_pod_that_does_not_exist() -> None:
    entry = the_one(labeled("n1", **{NEW: ""}))
    assert (entry.exists, entry.agrees, entry.notes) == (False, None, ("no such pod",))


def test_a_pod_that_is_pending() -> None:
    entry = the_one(labeled("n1", **{NEW: ""}), WEB.phase("Pending"))
    assert (entry.exists, entry.agrees, entry.notes) == (True, None, ("the pod is pending",))


def test_a_pod_that_has_ended() -> None:
    entry = the_one(labeled("n1", **{NEW: ""}), WEB.on("n1").phase("Failed"))
    assert (entry.runs_on, entry.agrees, entry.notes) == ("", None, ("the pod has ended (Failed)",))


def test_a_pod_of_another_scheduler() -> None:
    entry = the_one(labeled("n1", **{NEW: ""}), WEB.on("n1").scheduler("other"))
    assert entry.notes == ("the pod has schedulerName other",)


def test_the_older_form_is_shown_with_the_pod_that_it_is_about() -> None:
    entry = the_one(labeled("n1", **{OLD: ""}), WEB.on("n1"), WEB.scheduler("other"))
    assert (entry.namespace, entry.older, entry.counts, entry.agrees) == ("shop", True, True, True)
    assert entry.notes == ("older form",)


def test_the_older_form_is_shown_for_each_namespace_that_has_such_a_pod() -> None:
    found = listed(
        labeled("n1", **{OLD: ""}), WEB.on("n1"), pod("web-0", namespace="bar").scheduler("static")
    )
    assert [(entry.namespace, entry.agrees) for entry in found] == [("bar", None), ("shop", True)]


def test_the_older_form_without_a_pod_is_for_any_namespace() -> None:
    entry = the_one(labeled("n1", **{OLD: ""}))
    assert (entry.namespace, entry.notes) == (None, ("older form", "no such pod"))


def test_the_older_form_has_no_effect_next_to_the_newer() -> None:
    found = listed(labeled("n1", **{NEW: ""}), labeled("n2", **{OLD: ""}), WEB.on("n1"))
    assert [(entry.older, entry.counts, entry.agrees) for entry in found] == [
        (False, True, True),
        (True, False, None),
    ]


def test_a_label_is_read_in_two_ways_if_the_second_pod_exists() -> None:
    both = labeled("n1", **{NEW: ""})
    first, second = listed(
        both, WEB.on("n1"), pod("web-0", namespace="bar").scheduler("static.shop").on("n2")
    )
    assert (first.scheduler, first.namespace, first.older) == ("static", "shop", False)
    assert (second.scheduler, second.namespace, second.older) == ("static.shop", "bar", True)
    assert "also read as shop/web-0 of scheduler static" in second.notes


def test_a_second_reading_is_shown_if_its_scheduler_is_asked_for() -> None:
    (entry,) = listed(labeled("n1", **{NEW: ""}), scheduler="static.shop")
    assert (entry.scheduler, entry.namespace, entry.older) == ("static.shop", None, True)


def test_one_namespace_has_its_own_pins_and_those_of_the_older_form() -> None:
    other = "rf.scheduler.static.bar/web-0"
    found = listed(labeled("n1", **{NEW: "", other: "", OLD: ""}), namespace="shop")
    assert [entry.label for entry in found] == [OLD, NEW]


def test_one_scheduler_has_its_own_pins() -> None:
    found = listed(labeled("n1", **{NEW: "", "rf.scheduler.other.shop/web-0": ""}), scheduler="static")
    assert [entry.label for entry in found] == [NEW]


def test_pods_are_in_the_order_of_their_numbers() -> None:
    keys = {f"rf.scheduler.static.shop/web-{number}": "" for number in (10, 2, 1)}
    assert [entry.pod for entry in listed(labeled("n1", **keys))] == ["web-1", "web-2", "web-10"]


def test_labels_of_other_kinds_are_not_shown() -> None:
    assert listed(labeled("n1", zone="a", **{"rf.scheduler/web-0": ""})) == ()
