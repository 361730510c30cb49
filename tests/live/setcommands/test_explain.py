"""`longshore explain` about pods of sets, with any scheduler."""

from pathlib import Path

from tests.live.setcommands.commands import Stage, as_json, trigger

from longshore.api.pod_set import plan_name

READ = ("", "pods nodes namespaces", "get list")


def test_a_pod_that_is_held_and_one_that_is_planned(stage: Stage) -> None:
    a, _, _ = stage.nodes
    stage.create(trigger(), stage.member("held"))
    stage.create(trigger("now", "burst", state="Schedule"), stage.member("planned", "burst"))
    stage.create(stage.plan({"planned": a}, "burst"))
    held = as_json(stage.run("explain", "held", "-o", "json"))["now"]
    assert held["gatedBy"] == (
        "PodSetPlanner: pod set batch is held by its trigger go until its state is Schedule"
    )
    assert held["explanation"]["feasible"] == stage.nodes
    planned = as_json(stage.run("explain", "planned", "-o", "json"))["now"]
    assert (planned["gatedBy"], planned["podSet"]["plannedNode"]) == ("", a)
    told = stage.run("explain", "planned").stdout
    assert f"\n  planned for {a} by plan {plan_name(stage.namespace, 'burst')}\n" in told


def test_a_held_pod_from_a_saved_cluster(stage: Stage, tmp_path: Path) -> None:
    stage.create(trigger(), stage.member("held"))
    file = str(tmp_path / "cluster.jsonl")
    live = as_json(stage.run("explain", "held", "--save", file, "-o", "json"))
    assert as_json(stage.run("explain", "held", "--record", file, "-o", "json")) == live


def test_a_user_without_the_right_to_see_triggers_gets_a_hint(stage: Stage) -> None:
    stage.create(trigger(), stage.member("held"))
    done = stage.run("explain", "held", kubeconfig=stage.caller(READ))
    assert "warning: scheduletriggers.planner.ciena.io left out: " in done.stderr
    assert "  kept out of the queue by PodSetPlanner: no trigger of pod set batch was found\n" in done.stdout
