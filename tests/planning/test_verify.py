"""Invalid entries of a plan, and the plan without them."""

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


def test_a_valid_plan_has_no_violations() -> None:
    assert told(World(*three()), (web("a"), "n1"), (web("b"), "n1"), (web("c"), "n2")) == []


def test_a_node_lacks_room_for_all_pods_planned_there() -> None:
    entries = [(web(name), "n1") for name in "abc"]
    assert told(World(*three()), *entries) == ["default/c on n1: Insufficient cpu"]


def test_an_invalid_entry_takes_no_room_from_the_next() -> None:
    entries = [(web("a"), "n1"), (web("huge", "8"), "n1"), (web("b"), "n1")]
    assert told(World(*three()), *entries) == ["default/huge on n1: Insufficient cpu"]


def test_an_entry_for_an_unknown_node_is_a_violation() -> None:
    assert told(World(*three()), (web("a"), "n9")) == ["default/a on n9: there is no such node"]


def test_an_entry_for_an_unknown_pod_is_a_violation() -> None:
    plan = Plan((entry(web("a"), "n1"),))
    found = violations(World(*three()).engine.chooser("longshore"), plan, {})
    assert found == [f"default/a on n1: {UNKNOWN_POD}"]


def test_an_entry_for_an_ineligible_node_is_a_violation() -> None:
    found = told(World(*three()), (web("a"), "n1"), eligible={web("a").metadata.uid: {"n2"}})
    assert found == ["default/a on n1: the node is not eligible"]


def test_an_untolerated_taint_is_a_violation() -> None:
    world = World(room("n1").taint("dedicated", "db"))
    found = told(world, (web("a"), "n1"))
    assert found == ["default/a on n1: node(s) had untolerated taint(s)"]


def test_a_node_ruled_out_by_prefilter_is_a_violation() -> None:
    found = told(World(*three()), (web("a").only_on("n2"), "n1"))
    assert found == ["default/a on n1: node(s) didn't satisfy plugin(s) [NodeAffinity]"]


def test_the_order_of_the_entries_matters() -> None:
    near, db = web("near").affinity_to(HOST, app="db"), web("db").labels(app="db")
    assert told(World(*three()), (db, "n1"), (near, "n1")) == []
    (found,) = told(World(*three()), (near, "n1"), (db, "n1"))
    assert found.startswith("default/near on n1: node(s) didn't match pod affinity rules")


def test_a_second_entry_for_a_pod_is_a_violation() -> None:
    found = told(World(*three()), (web("a"), "n1"), (web("a"), "n2"))
    assert found == [f"default/a on n2: {TWICE}"]


def test_a_pod_that_is_already_on_its_node_is_no_violation() -> None:
    assert told(World(*three(), web("a").on("n1")), (web("a"), "n1")) == []


def test_a_pod_that_is_already_on_another_node_is_a_violation() -> None:
    found = told(World(*three(), web("a").on("n2")), (web("a"), "n1"))
    assert found == ["default/a on n1: the pod is already on n2"]


def test_checking_leaves_no_trace() -> None:
    world = World(*three())
    before = picture(world.cluster)
    told(world, *((web(name), "n1") for name in "abc"))
    checked(world.problem(web("a"), web("b")), [entry(web("a"), "n1"), entry(web("b"), "n2")])
    assert picture(world.cluster) == before


# The plan that is made from an answer.


def test_valid_entries_are_kept_in_order() -> None:
    pods = [web(name) for name in "abc"]
    entries = [entry(pods[2], "n1"), entry(pods[0], "n1"), entry(pods[1], "n2")]
    plan = checked(World(*three()).problem(*pods), entries, planner="elsewhere")
    assert plan.assignments == tuple(entries)
    assert plan.complete
    assert plan.planner == "elsewhere"
    assert plan.objective == 1.0


def test_invalid_entries_are_left_out_with_the_reason() -> None:
    pods = [web("a"), web("b", "8"), web("c"), web("d")]
    plan = checked(World(*three()).problem(*pods), [entry(each, "n1") for each in pods[:3]])
    assert by_name(plan) == {"a": "n1", "c": "n1"}
    assert reasons(plan) == {"b": "n1: Insufficient cpu", "d": NOT_PLANNED}


def test_an_answer_without_order_is_put_in_order() -> None:
    near, db = web("near").affinity_to(HOST, app="db"), web("db").labels(app="db")
    plan = checked(World(*three()).problem(near, db), [entry(near, "n1"), entry(db, "n1")])
    assert [each.pod for each in plan.assignments] == ["default/db", "default/near"]


def test_entries_for_pods_outside_the_problem_are_ignored() -> None:
    plan = checked(World(*three()).problem(web("a")), [entry(web("other"), "n1"), entry(web("a"), "n2")])
    assert by_name(plan) == {"a": "n2"}
    assert plan.complete


def test_a_pod_without_an_entry_stays_on_its_kept_node() -> None:
    problem = World(*three()).problem(web("a"), web("b"), kept={web("b").metadata.uid: "n3"})
    assert by_name(checked(problem, [entry(web("a"), "n2")])) == {"a": "n2", "b": "n3"}


def test_an_entry_counts_more_than_a_kept_node() -> None:
    problem = World(*three()).problem(web("a"), kept={web("a").metadata.uid: "n3"})
    assert by_name(checked(problem, [entry(web("a"), "n2")])) == {"a": "n2"}


def test_all_or_nothing_also_applies_to_answers() -> None:
    problem = World(*three()).problem(web("a"), web("b", "8"), all_or_nothing=True)
    plan = checked(problem, [entry(web("a"), "n1"), entry(web("b", "8"), "n2")])
    assert plan.assignments == ()
    assert all(GOES_AS_A_WHOLE in reason.lower() for reason in reasons(plan).values())


def test_an_answer_with_an_ineligible_node_is_left_out() -> None:
    problem = World(*three()).problem(web("a"), eligible={web("a").metadata.uid: {"n2"}})
    assert reasons(checked(problem, [entry(web("a"), "n1")])) == {"a": "n1: the node is not eligible"}


@pytest.mark.parametrize("node", ["n1", "n9"])
def test_a_pod_that_has_a_node_cannot_be_checked(node: str) -> None:
    with pytest.raises(ValueError, match="already has a node"):
        checked(World(*three(), web("a").on("n1")).problem(web("a")), [entry(web("a"), node)])
