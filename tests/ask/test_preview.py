"""The preview of a plan, compared with what the simulated scheduler does when the set is released."""

from dataclasses import replace as replaced
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.podset.simulated_sets import WORKERS, Sets, member, trigger, worker

from longshore.api import ObjectMeta, SchedulePlan, SchedulePlanSpec, Service
from longshore.api.meta import ApiObject
from longshore.api.pod_set import POD_SET_LABEL, SCHEDULE, PlanEntry, plan_name
from longshore.ask.preview import NotPlaced, Preview, planner_setup, preview
from longshore.ask.snapshot import Snapshot
from longshore.config import LongshoreSettings
from longshore.config.setup import Setup
from longshore.errors import UserError
from longshore.planning import Objective
from longshore.testing import pod

HEADER = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
FULL = pod("full").requests(cpu="3").on("n1").phase("Running")


def shown(
    *objects: ApiObject,
    setup: Setup | None = None,
    objective: Objective | None = None,
    budget: float | None = None,
) -> Preview:
    """Preview the set `batch` with the first of equal nodes, as in the simulation."""
    setup = setup or planner_setup()
    first = replace(setup.configuration, longshore=LongshoreSettings(tie_break="first"))
    return preview(
        replaced(setup, configuration=first),
        Snapshot(objects),
        namespace="default",
        podset="batch",
        objective=objective,
        budget=budget,
    )


def stored(podset: str = "batch", **entries: str) -> SchedulePlan:
    meta = ObjectMeta(name=plan_name("default", podset), namespace="default", labels={POD_SET_LABEL: podset})
    return SchedulePlan(
        metadata=meta, spec=SchedulePlanSpec(tuple(PlanEntry(each, node) for each, node in entries.items()))
    )


def planner(label: str, name: str = "planner", namespace: str = "planner-system") -> Service:
    meta = ObjectMeta(name=name, namespace=namespace, labels={f"planner.ciena.io/{label}": "enabled"})
    return Service(metadata=meta)


def nodes(made: Preview) -> dict[str, str]:
    return {each.pod: each.node for each in made.assignments}


@pytest.mark.parametrize("objective", ["Balance", "Pack"])
def test_a_held_set_goes_where_the_preview_says(objective: str) -> None:
    cluster = (
        *WORKERS,
        FULL,
        *(member(f"small-{number}") for number in range(4)),
        member("large", cpu="3"),
        member("apart", cpu="500m").labels(app="a").anti_affinity_to("kubernetes.io/hostname", app="a"),
    )
    go = trigger(objective=objective)
    made = shown(*cluster, go)
    world = Sets(*cluster, go)
    world.release()
    world.after(5.0)
    assert len(made.assignments) == 6
    assert nodes(made) == world.entries()
    plan = world.plan()
    assert plan is not None
    assert (made.objective, made.bound) == pytest.approx((plan.status.objective, plan.status.bound))


def test_loads_are_those_of_now_and_with_the_plan() -> None:
    made = shown(*WORKERS, FULL, member("one", cpu="2"), trigger())
    [one] = made.assignments
    assert [node.name for node in made.nodes] == ["n1", "n2", "n3"]
    now = {node.name: (node.now.pods, node.now.cpu) for node in made.nodes}
    planned = {node.name: (node.planned.pods, node.planned.cpu) for node in made.nodes}
    assert now == {"n1": (1, 3000), "n2": (0, 0), "n3": (0, 0)}
    assert planned == now | {one.node: (1, 2000)}
    assert made.nodes[0].allocatable.cpu == 4000


def test_pods_that_do_not_fit_have_a_reason() -> None:
    made = shown(*WORKERS, member("one"), member("huge", cpu="9"), trigger())
    assert nodes(made).keys() == {"one"}
    assert made.left_out == (NotPlaced("huge", "0/3 nodes are available: 3 Insufficient cpu."),)
    assert made.bound is None


def test_an_all_or_nothing_set_is_left_out_as_a_whole() -> None:
    made = shown(*WORKERS, member("one"), member("huge", cpu="9"), trigger(all_or_nothing=True))
    assert made.wanted.all_or_nothing
    assert made.assignments == ()
    assert {each.pod for each in made.left_out} == {"one", "huge"}
    assert all(node.now == node.planned for node in made.nodes)


def test_objective_and_budget_are_those_of_the_trigger_unless_given() -> None:
    cluster = (*WORKERS, member("a"), member("b"), trigger(objective="Pack", budget="2s"))
    made = shown(*cluster)
    assert (made.wanted.objective, made.wanted.budget) == ("Pack", 2.0)
    assert len(set(nodes(made).values())) == 1
    other = shown(*cluster, objective="Balance", budget=0.5)
    assert (other.wanted.objective, other.wanted.budget) == ("Balance", 0.5)
    assert len(set(nodes(other).values())) == 2


def test_entries_of_the_stored_plan_are_kept_and_the_rest_is_added() -> None:
    made = shown(*WORKERS, member("a"), member("b", cpu="4"), stored(a="n1"), trigger(objective="Pack"))
    assert {each.pod: each.stored for each in made.assignments} == {"a": True, "b": False}
    assert nodes(made)["a"] == "n1"
    assert nodes(made)["b"] != "n1"


def test_entries_are_kept_even_if_another_pod_has_no_room() -> None:
    """As in the scheduler, existing entries hold, and only an all-or-nothing set gives them up."""
    cluster = (
        worker("n1"),
        worker("n2", cpu="2"),
        member("a", cpu="2"),
        member("b", cpu="4"),
        stored(a="n1"),
    )
    made = shown(*cluster, trigger())
    assert nodes(made) == {"a": "n1"}
    world = Sets(*cluster, trigger())
    world.release()
    world.after(5.0)
    assert world.nodes() == {"a": "n1", "b": ""}


def test_entries_that_stand_in_the_way_of_the_whole_are_given_up() -> None:
    two = (worker("small", cpu="2"), worker("large", cpu="4"))
    pods = (member("a", cpu="2"), member("b", cpu="4"))
    kept = stored(a="large")
    assert nodes(shown(*two, *pods, kept, trigger())) == {"a": "large"}
    whole = shown(*two, *pods, kept, trigger(all_or_nothing=True))
    assert nodes(whole) == {"a": "small", "b": "large"}
    assert {each.stored for each in whole.assignments} == {False}


def test_entries_that_hold_do_not_go_without_the_rest_of_the_whole() -> None:
    made = shown(*WORKERS, member("a"), member("huge", cpu="9"), stored(a="n1"), trigger(all_or_nothing=True))
    assert made.assignments == ()
    assert {each.pod for each in made.left_out} == {"a", "huge"}


def test_an_all_or_nothing_set_waits_for_a_gate_of_one_pod() -> None:
    made = shown(*WORKERS, member("a"), member("b").gates("quota"), trigger(all_or_nothing=True))
    assert made.left_out == (
        NotPlaced("a", "the set goes only as a whole, and b has the scheduling gate quota"),
    )


def test_an_entry_that_no_longer_fits_is_planned_again() -> None:
    made = shown(*WORKERS, FULL, member("a", cpu="2"), stored(a="n1"), trigger())
    [a] = made.assignments
    assert (a.node in ("n2", "n3"), a.stored) == (True, False)


def test_room_of_another_set_that_is_on_its_way_is_left_to_it() -> None:
    other = member("theirs", podset="letters", cpu="4")
    go = trigger("letters", podset="letters", state=SCHEDULE)
    plan = stored("letters", theirs="n1")
    made = shown(worker("n1"), worker("n2"), other, go, plan, member("ours"), trigger())
    assert nodes(made) == {"ours": "n2"}


def test_room_of_another_set_that_is_held_is_free() -> None:
    other = member("theirs", podset="letters", cpu="4")
    go = trigger("letters", podset="letters")
    plan = stored("letters", theirs="n1")
    made = shown(worker("n1"), other, go, plan, member("ours"), trigger())
    assert nodes(made) == {"ours": "n1"}


def test_pods_that_are_not_for_this_planner_are_named() -> None:
    made = shown(
        *WORKERS,
        member("foreign").scheduler("other"),
        member("gated").gates("quota"),
        member("ours"),
        trigger(),
    )
    assert nodes(made).keys() == {"ours"}
    assert {each.pod: each.reason for each in made.not_planned} == {
        "foreign": "it belongs to scheduler other",
        "gated": "it waits for scheduling gates: quota",
    }


def test_a_pod_with_the_gate_of_sets_alone_is_planned() -> None:
    made = shown(*WORKERS, member("gated").gates("longshore.dev/pod-set"), trigger())
    assert nodes(made).keys() == {"gated"}


def test_pods_that_have_a_node_or_have_ended_are_not_planned() -> None:
    made = shown(*WORKERS, member("bound").on("n1"), member("ended").phase("Succeeded"), trigger())
    assert (made.assignments, made.left_out, made.not_planned) == ((), (), ())


def test_the_preview_says_what_holds_the_set() -> None:
    assert "pod set batch has no trigger" in shown(*WORKERS, member("a")).held_by
    held = shown(*WORKERS, member("a"), trigger())
    assert (held.trigger, held.held_by.startswith("pod set batch is held by its trigger go")) == ("go", True)
    assert shown(*WORKERS, member("a"), trigger(state=SCHEDULE)).held_by == ""


def test_a_planner_service_of_the_set_is_a_warning() -> None:
    made = shown(*WORKERS, member("a"), trigger(), planner("batch"), planner("other", name="theirs"))
    assert made.warnings == (
        "the planner of the set, Service planner-system/planner, was not asked: "
        "the built-in planner made this plan",
    )


def test_a_planner_service_that_is_not_used_is_no_warning(tmp_path: Path) -> None:
    config = tmp_path / "scheduler.yaml"
    config.write_text(
        f"{HEADER}leaderElection: {{resourceName: ours}}\n"
        "profiles:\n- schedulerName: podset-planner-scheduler\n"
        "  plugins: {multiPoint: {enabled: [{name: PodSetPlanner}]}}\n"
        "  pluginConfig: [{name: PodSetPlanner, args: {plannerNamespaces: [elsewhere]}}]\n"
    )
    setup = planner_setup(str(config))
    made = shown(*WORKERS, member("a"), trigger(), planner("batch"), setup=setup)
    assert nodes(made).keys() == {"a"}
    assert made.warnings == ()


def test_a_custom_plugin_is_evaluated(tmp_path: Path) -> None:
    plugin = tmp_path / "only_n3.py"
    plugin.write_text(
        "from longshore.framework import filter_plugin\n\n\n@filter_plugin\ndef only_n3(pod, node):\n"
        "    return None if node.name == 'n3' else 'node(s) were not n3'\n"
    )
    setup = planner_setup(plugins=[str(plugin)])
    assert nodes(shown(*WORKERS, member("a"), trigger(), setup=setup)) == {"a": "n3"}


def test_a_configuration_without_the_profile_of_sets(tmp_path: Path) -> None:
    config = tmp_path / "scheduler.yaml"
    config.write_text(f"{HEADER}profiles: [{{schedulerName: other}}]\n")
    with pytest.raises(UserError, match="has no profile for the pods of sets: schedulerName podset-planner"):
        planner_setup(str(config))
