"""What does not hold in a plan, and what is left of one without it."""

import pytest
from tests.planning.worlds import World, by_name, infos, picture, reasons, room, three

from longshore.planning import Assignment, Plan
from longshore.planning.plan import GOES_AS_A_WHOLE
from longshore.planning.verify import NOT_PLANNED, TWICE, UNKNOWN_POD, checked, violations
from longshore.testing import PodBuilder, pod

HOST = "kubernetes.io/hostname"


def web(name: str, cpu: str = "2") -> PodBuilder:
    return pod(name).requests(cpu=cpu)


def entry(pod: PodBuilder, node: str) -> Assignment:
    return Assignment(pod.key, pod.metadata.uid, node)


def told(world: World, *entries: tuple[PodBuilder, str], **options: object) -> list[str]:
    plan = Plan(tuple(entry(pod, node) for pod, node in entries))
    pods = infos(*(pod for pod, _ in entries))
    return violations(world.engine.chooser("longshore"), plan, pods, **options)  # type: ignore[arg-type]


def test_a_plan_that_holds() -> None:
    assert told(World(*three()), (web("a"), "n1"), (web("b"), "n1"), (web("c"), "n2")) == []


def test_a_node_without_room_for_all_that_are_planned_there() -> None:
    entries = [(web(name), "n1") for name in "abc"]
    assert told(World(*three()), *entries) == ["default/c on n1: Insufficient cpu"]


def test_an_entry_that_does_not_hold_takes_no_room_from_the_next() -> None:
    entries = [(web("a"), "n1"), (web("huge", "8"), "n1"), (web("b"), "n1")]
    assert told(World(*three()), *entries) == ["default/huge on n1: Insufficient cpu"]


def test_an_unknown_node() -> None:
    assert told(World(*three()), (web("a"), "n9")) == ["default/a on n9: there is no such node"]


def test_an_unknown_pod() -> None:
    plan = Plan((entry(web("a"), "n1"),))
    found = violations(World(*three()).engine.chooser("longshore"), plan, {})
    assert found == [f"default/a on n1: {UNKNOWN_POD}"]


def test_a_node_that_is_not_eligible() -> None:
    found = told(World(*three()), (web("a"), "n1"), eligible={web("a").metadata.uid: {"n2"}})
    assert found == ["default/a on n1: the node is not eligible"]


def test_a_taint_that_is_not_tolerated() -> None:
    world = World(room("n1").taint("dedicated", "db"))
    found = told(world, (web("a"), "n1"))
    assert found == ["default/a on n1: node(s) had untolerated taint(s)"]


def test_a_node_that_a_plugin_leaves_out() -> None:
    found = told(World(*three()), (web("a").only_on("n2"), "n1"))
    assert found == ["default/a on n1: node(s) didn't satisfy plugin(s) [NodeAffinity]"]


def test_the_order_counts() -> None:
    near, db = web("near").affinity_to(HOST, app="db"), web("db").labels(app="db")
    assert told(World(*three()), (db, "n1"), (near, "n1")) == []
    (found,) = told(World(*three()), (near, "n1"), (db, "n1"))
    assert found.startswith("default/near on n1: node(s) didn't match pod affinity rules")


def test_a_pod_with_two_entries() -> None:
    found = told(World(*three()), (web("a"), "n1"), (web("a"), "n2"))
    assert found == [f"default/a on n2: {TWICE}"]


def test_a_pod_that_is_on_its_node_by_now() -> None:
    assert told(World(*three(), web("a").on("n1")), (web("a"), "n1")) == []


def test_a_pod_that_is_on_another_node_by_now() -> None:
    found = told(World(*three(), web("a").on("n2")), (web("a"), "n1"))
    assert found == ["default/a on n1: the pod is on n2 already"]


def test_looking_leaves_no_trace() -> None:
    world = World(*three())
    before = picture(world.cluster)
    told(world, *((web(name), "n1") for name in "abc"))
    checked(world.problem(web("a"), web("b")), [entry(web("a"), "n1"), entry(web("b"), "n2")])
    assert picture(world.cluster) == before


# What is left of an answer.


def test_entries_that_hold_are_kept_in_order() -> None:
    pods = [web(name) for name in "abc"]
    entries = [entry(pods[2], "n1"), entry(pods[0], "n1"), entry(pods[1], "n2")]
    plan = checked(World(*three()).problem(*pods), entries, planner="elsewhere")
    assert plan.assignments == tuple(entries)
    assert plan.complete
    assert plan.planner == "elsewhere"
    assert plan.objective == 1.0


def test_entries_that_do_not_hold_are_left_out_with_the_reason() -> None:
    pods = [web("a"), web("b", "8"), web("c"), web("d")]
    plan = checked(World(*three()).problem(*pods), [entry(each, "n1") for each in pods[:3]])
    assert by_name(plan) == {"a": "n1", "c": "n1"}
    assert reasons(plan) == {"b": "n1: Insufficient cpu", "d": NOT_PLANNED}


def test_an_answer_without_order_is_put_in_order() -> None:
    near, db = web("near").affinity_to(HOST, app="db"), web("db").labels(app="db")
    plan = checked(World(*three()).problem(near, db), [entry(near, "n1"), entry(db, "n1")])
    assert [each.pod for each in plan.assignments] == ["default/db", "default/near"]


def test_entries_about_pods_that_are_not_asked_for_are_passed_over() -> None:
    plan = checked(World(*three()).problem(web("a")), [entry(web("other"), "n1"), entry(web("a"), "n2")])
    assert by_name(plan) == {"a": "n2"}
    assert plan.complete


def test_a_pod_without_an_entry_stays_where_it_was_kept() -> None:
    problem = World(*three()).problem(web("a"), web("b"), kept={web("b").metadata.uid: "n3"})
    assert by_name(checked(problem, [entry(web("a"), "n2")])) == {"a": "n2", "b": "n3"}


def test_the_answer_counts_more_than_what_was_kept() -> None:
    problem = World(*three()).problem(web("a"), kept={web("a").metadata.uid: "n3"})
    assert by_name(checked(problem, [entry(web("a"), "n2")])) == {"a": "n2"}


def test_all_or_nothing_holds_for_answers_as_well() -> None:
    problem = World(*three()).problem(web("a"), web("b", "8"), all_or_nothing=True)
    plan = checked(problem, [entry(web("a"), "n1"), entry(web("b", "8"), "n2")])
    assert plan.assignments == ()
    assert all(GOES_AS_A_WHOLE in reason.lower() for reason in reasons(plan).values())


def test_an_answer_about_eligible_nodes_only() -> None:
    problem = World(*three()).problem(web("a"), eligible={web("a").metadata.uid: {"n2"}})
    assert reasons(checked(problem, [entry(web("a"), "n1")])) == {"a": "n1: the node is not eligible"}


@pytest.mark.parametrize("node", ["n1", "n9"])
def test_a_pod_that_has_its_node_cannot_be_asked_for(node: str) -> None:
    with pytest.raises(ValueError, match="has a node already"):
        checked(World(*three(), web("a").on("n1")).problem(web("a")), [entry(web("a"), node)])
