"""An all-or-nothing set: every pod gets a node, or no pod is bound, and the conditions say why."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.podset.simulated_sets import WORKERS, Sets, address, member, plan_by_hand, planner, trigger, worker

from longshore.api.pod_set import PLANNING, SCHEDULE
from longshore.engine.answers.observer import Unobserved
from longshore.engine.cycle.reporting import REASON_UNSCHEDULABLE
from longshore.framework.effects import Bind
from longshore.planning.plan import GOES_AS_A_WHOLE
from longshore.podset.texts import REASON_GATES, REASON_WAITING
from longshore.sim import Faults
from longshore.testing import pod

HOSTNAME = "kubernetes.io/hostname"
WHOLE = trigger(state=SCHEDULE, all_or_nothing=True)
HELD = trigger(all_or_nothing=True)
SEVEN = tuple(member(f"p{n}", cpu="2") for n in range(7))


def test_a_set_that_fits_goes() -> None:
    sets = Sets(*WORKERS, HELD, *SEVEN[:6])
    sets.release()
    sets.after(1.0)
    assert sets.entries() == sets.nodes()
    assert all(sets.nodes().values())
    assert len(sets.plan_writes()) == 1


def test_a_set_with_one_pod_too_many_stays_unbound_and_every_condition_says_why() -> None:
    sets = Sets(*WORKERS, HELD, *SEVEN)
    sets.release()
    sets.after(600.0)
    assert sets.asked_for(Bind) == []
    assert sets.plan() is None
    for each in SEVEN:
        reason, message = sets.condition(each.metadata.name)
        assert reason == REASON_UNSCHEDULABLE
        assert GOES_AS_A_WHOLE in message.lower()
    # Nothing changes, so nothing is tried again.
    assert sets.engine.deadline is None


def test_a_set_that_still_does_not_fit_is_reported_once() -> None:
    sets = Sets(*WORKERS, HELD, *SEVEN)
    sets.release()
    sets.after(60.0)
    # A change that causes another try, with the same result.
    sets.add(worker("n1").labels(rack="1"))
    sets.after(60.0)
    assert sets.reasons_told("p0") == [REASON_WAITING, "FailedScheduling"]


class CountedPlans(Unobserved):
    number = 0

    def planned(self, planner: str, seconds: float, *, placed: int, left_out: int) -> None:
        self.number += 1


def test_it_is_planned_again_once_a_second_at_most_however_much_happens() -> None:
    plans = CountedPlans()
    sets = Sets(*WORKERS, WHOLE, *SEVEN)
    sets.engine.observe(plans)
    sets.after(5.0)
    before = plans.number
    for number in range(100):
        sets.create(worker("n1").labels(number=str(number)), at=sets.now + number * 0.05)
    sets.after(10.0)
    assert 4 <= plans.number - before <= 6


@pytest.mark.parametrize("helper", ["a node", "a pod that goes", "a smaller set"])
def test_a_set_that_did_not_fit_goes_when_it_does(helper: str) -> None:
    filler = pod("filler").requests(cpu="2").on("n1")
    sets = Sets(*WORKERS, filler, WHOLE, *SEVEN[:6])
    sets.after(60.0)
    assert sets.asked_for(Bind) == []
    match helper:
        case "a node":
            sets.add(worker("n4"))
        case "a pod that goes":
            sets.take_away(filler)
        case "a smaller set":
            sets.take_away(SEVEN[0])
    sets.after(3.0)
    nodes = {name: node for name, node in sets.nodes().items() if name != "filler"}
    assert all(nodes.values())
    assert sets.entries() == nodes


def test_a_set_that_did_not_fit_goes_when_its_own_pod_can_go_elsewhere() -> None:
    """Only the pod itself changes. There is no other event in the cluster."""
    sets = Sets(*WORKERS, worker("reserved").taint("team"), WHOLE, *SEVEN)
    sets.after(60.0)
    assert sets.asked_for(Bind) == []
    before = sets.pod("p3")
    sets.add(
        replace(before, spec=replace(before.spec, tolerations=member("x").tolerate("team").spec.tolerations))
    )
    sets.after(3.0)
    assert sets.node_of("p3") == "reserved"
    assert all(sets.nodes().values())


def test_a_set_that_did_not_fit_is_not_planned_again_when_an_annotation_changes() -> None:
    sets = Sets(*WORKERS, WHOLE, *SEVEN)
    sets.after(60.0)
    before = sets.pod("p3")
    sets.add(replace(before, metadata=replace(before.metadata, annotations={"seen": "yes"})))
    assert sets.engine.deadline is None


class Slow:
    """A stopwatch that advances by a tenth of a second at each reading."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 0.1
        return self.now


def test_a_larger_budget_gives_a_set_that_did_not_fit_another_chance() -> None:
    sets = Sets(worker("n1", cpu="4"), worker("n2", cpu="4"), WHOLE)
    sets.engine.stopwatch = Slow()
    # By score the first two pods get a node each, and no node is left for the last: they must be packed.
    sets.create(*(member(name, cpu="2").priority(1) for name in "ab"), member("c", cpu="4"))
    sets.after(60.0)
    assert sets.asked_for(Bind) == []
    old = sets.trigger()
    sets.add(replace(old, spec=replace(old.spec, budget="10s")))
    sets.after(3.0)
    assert sets.entries() == sets.nodes()
    assert all(sets.nodes().values())


def test_a_set_that_becomes_all_or_nothing_while_its_planner_is_asked_is_planned_again() -> None:
    """The answer leaves out one pod, which is allowed unless the set is all-or-nothing."""
    sets = Sets(*WORKERS, planner(), trigger(), *SEVEN, plan_time=5.0)
    sets.start_planner(address(), lambda _request: {f"p{n}": f"n{n % 3 + 1}" for n in range(6)})
    sets.release()
    sets.after(1.0)
    old = sets.trigger()
    sets.add(replace(old, spec=replace(old.spec, all_or_nothing=True)))
    sets.after(30.0)
    assert sets.asked_for(Bind) == []
    assert sets.engine.waiting_pods() == {}
    assert sets.condition("p0")[0] == REASON_UNSCHEDULABLE


def test_a_set_that_is_no_longer_all_or_nothing_goes_as_far_as_it_fits() -> None:
    sets = Sets(*WORKERS, WHOLE, *SEVEN)
    sets.after(60.0)
    old = sets.trigger()
    sets.add(replace(old, spec=replace(old.spec, all_or_nothing=False)))
    sets.after(1.0)
    assert sum(bool(node) for node in sets.nodes().values()) == 6


def test_none_is_bound_if_a_node_fails_while_the_plan_is_stored() -> None:
    sets = Sets(*WORKERS, HELD, *SEVEN[:6], write_latency=0.5)
    sets.release()
    sets.after(0.1)
    sets.add(worker("n2").unschedulable())
    sets.after(60.0)
    assert sets.asked_for(Bind) == []
    assert sets.entries() == {}
    sets.add(worker("n2"))
    sets.after(3.0)
    assert sets.entries() == sets.nodes()


def test_none_is_bound_if_a_node_failed_while_no_scheduler_ran() -> None:
    sets = Sets(*WORKERS, HELD, member("a"), member("b"), member("c", cpu="4"))
    sets.add(plan_by_hand({"a": "n1", "b": "n2", "c": "n3"}))
    sets.after(1.0)
    old = sets.trigger()
    sets.cluster.server.put(replace(old, spec=replace(old.spec, state=SCHEDULE)))
    for name in ("n1", "n2", "n3"):
        sets.cluster.server.put(worker(name, cpu="3"))
    sets.start_again(seed=1)
    sets.after(60.0)
    assert sets.asked_for(Bind) == []
    assert "n3" in sets.condition("c")[1] or "Insufficient cpu" in sets.condition("c")[1]
    sets.add(worker("n4"))
    sets.after(3.0)
    assert sets.entries() == sets.nodes()
    assert all(sets.nodes().values())


def test_entries_by_hand_give_way_if_else_the_whole_does_not_fit() -> None:
    sets = Sets(worker("n1", cpu="2"), worker("n2", cpu="1"), HELD)
    sets.add(member("small", cpu="1"), member("large", cpu="2"), plan_by_hand({"small": "n1"}))
    sets.release()
    sets.after(5.0)
    assert sets.nodes() == sets.entries() == {"small": "n2", "large": "n1"}


def test_a_pod_that_comes_later_is_bound_if_the_others_are_bound() -> None:
    sets = Sets(*WORKERS, WHOLE, member("a"), member("b"))
    sets.after(5.0)
    sets.add(member("c"))
    sets.after(1.0)
    assert sets.entries() == sets.nodes()
    assert all(sets.nodes().values())


def test_pods_that_came_later_go_together_or_not_at_all() -> None:
    sets = Sets(*WORKERS, WHOLE, *SEVEN[:5])
    sets.after(5.0)
    sets.create(*SEVEN[5:])
    sets.after(60.0)
    assert (sets.node_of("p5"), sets.node_of("p6")) == ("", "")
    assert len(sets.entries()) == 5


def test_a_set_waits_for_a_pod_with_a_gate_of_another_controller() -> None:
    sets = Sets(*WORKERS, WHOLE, member("a"), member("b").gates("example.com/quota"))
    sets.after(60.0)
    assert sets.asked_for(Bind) == []
    reason, message = sets.condition("a")
    assert reason == REASON_GATES
    assert message.endswith("b has the scheduling gate example.com/quota")
    sets.add(member("b"))
    sets.after(1.0)
    assert all(sets.nodes().values())


def test_back_to_planning_lets_none_go() -> None:
    sets = Sets(*WORKERS, HELD, *SEVEN[:6], write_latency=0.5)
    sets.release()
    sets.after(0.1)
    sets.set_state(PLANNING)
    sets.after(60.0)
    assert sets.asked_for(Bind) == []
    assert sets.condition("p0")[0] == REASON_WAITING
    sets.release()
    sets.after(2.0)
    assert all(sets.nodes().values())


def test_an_answer_of_a_planner_that_leaves_some_out_is_no_plan() -> None:
    sets = Sets(
        *WORKERS,
        planner(),
        HELD,
        member("a"),
        member("b"),
        planners={address(): lambda _request: {"a": "n3"}},
    )
    sets.release()
    sets.after(1.0)
    assert sets.entries() == sets.nodes()
    assert all(sets.nodes().values())


def test_while_the_set_is_planned_again_no_pod_follows_the_stored_plan() -> None:
    sets = Sets(
        *WORKERS,
        planner(),
        HELD,
        member("a"),
        member("b"),
        plan_by_hand({"a": "n1"}),
        planners={address(): lambda _request: {"a": "n2", "b": "n2"}},
        plan_time=5.0,
    )
    sets.release()
    sets.after(1.0)
    changed = sets.pod("a")
    sets.add(replace(changed, metadata=replace(changed.metadata, annotations={"seen": "yes"})))
    sets.after(10.0)
    assert sets.entries() == sets.nodes() == {"a": "n2", "b": "n2"}
    assert len(sets.requests()) == 1


def test_two_sets_do_not_each_take_half_of_the_room() -> None:
    names = ("one", "two")
    sets = Sets(*WORKERS, *(trigger(n, podset=n, state=SCHEDULE, all_or_nothing=True) for n in names))
    sets.create(*(member(f"{name}-{n}", podset=name, cpu="2") for n in range(4) for name in names))
    sets.after(60.0)
    bound = sorted(name.partition("-")[0] for name, node in sets.nodes().items() if node)
    assert bound == [bound[0]] * 4


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.sampled_from(["500m", "1", "2", "3"]), min_size=2, max_size=7),
    st.lists(st.tuples(st.floats(0.0, 3.0), st.sampled_from(["n1", "n2", "n3"]), st.booleans()), max_size=5),
    st.integers(0, 100),
)
def test_whatever_happens_to_nodes_a_set_starts_as_a_whole(
    sizes: list[str], happenings: list[tuple[float, str, bool]], seed: int
) -> None:
    sets = Sets(*WORKERS, HELD, write_latency=0.2, watch_latency=0.1, bind_latency=0.01, seed=seed)
    sets.create(*(member(f"p{n}", cpu=cpu) for n, cpu in enumerate(sizes)))
    sets.after(0.5)
    old = sets.trigger()
    sets.create(replace(old, spec=replace(old.spec, state=SCHEDULE)), at=1.0)
    for at, name, closed in happenings:
        sets.create(worker(name).unschedulable() if closed else worker(name), at=at)
    while sets.now < 10.0:
        sets.after(0.05)
        binds = len({bind.name for bind in sets.asked_for(Bind)})
        assert binds in (0, len(sizes))
    sets.create(*WORKERS, worker("n4", cpu="64"))
    sets.after(10.0)
    assert sets.entries() == sets.nodes()
    assert all(sets.nodes().values())


def test_a_bind_that_fails_does_not_make_the_others_wait_forever() -> None:
    faults = Faults(failed=0.5, until=20.0)
    sets = Sets(*WORKERS, WHOLE, *SEVEN[:6], faults=faults, seed=3)
    sets.after(60.0)
    assert sets.entries() == sets.nodes()
    assert all(sets.nodes().values())
