"""`longshore plan` on the real control plane: stored plans, and previews that write nothing."""

import time
from collections.abc import Iterator

import pytest
from tests.live.setcommands.commands import Stage, as_json, nodes, the_error, trigger

from longshore.api import Change, Pod
from longshore.api.pod_set import POD_SET_LABEL, SCHEDULER_NAME, plan_name
from longshore.ask.snapshot import take_all
from longshore.cluster import PodInfo
from longshore.config import default_configuration
from longshore.dev import ControlPlane
from longshore.engine import Engine
from longshore.kube import Client, load
from longshore.planning import Problem, greedy

READ_SETS = ("planner.ciena.io", "scheduletriggers scheduleplans", "list")
READ_PODS = ("", "pods", "list")
READ_NODES = ("", "nodes", "list")

STATUS = {
    "objective": 0.5,
    "bound": 0.4,
    "gap": 0.2,
    "planner": "built-in",
    "seconds": 0.012,
    "planned": 4,
    "following": 1,
    "unplaced": [
        {"pod": "big-0", "reason": "0/3 nodes are available: 3 Insufficient cpu."},
        {"pod": "big-1", "reason": "0/3 nodes are available: 3 Insufficient cpu."},
    ],
    "conditions": [{"type": "Complete", "status": "False", "reason": "PodsLeftOut", "message": "2 of 6"}],
}


@pytest.fixture
def pool(control_plane: ControlPlane) -> Iterator[list[str]]:
    """New nodes for each test, because pods of the last test may still be on the other nodes."""
    with nodes(control_plane) as names:
        yield names


def carry_out_half(stage: Stage) -> None:
    """Store a plan with an entry of each kind: followed, not followed, pending and without a pod."""
    a, b, _ = stage.nodes
    stage.create(
        trigger(state="Schedule"),
        *(stage.member(name) for name in ("there", "elsewhere", "waits", "late")),
        stage.plan({"there": a, "elsewhere": a, "waits": b, "gone": b}),
    )
    stage.bind({"there": a, "elsewhere": b})
    stage.set_status("sp", plan_name(stage.namespace, "batch"), STATUS)


def test_a_stored_plan_is_shown_next_to_the_nodes_of_its_pods(stage: Stage) -> None:
    a, b, _ = stage.nodes
    carry_out_half(stage)
    content = as_json(stage.run("plan", "batch", "-o", "json"))
    assert (content["name"], content["podSet"]) == (plan_name(stage.namespace, "batch"), "batch")
    assert {key: content[key] for key in ("planner", "objective", "bound", "gap", "seconds")} == {
        key: STATUS[key] for key in ("planner", "objective", "bound", "gap", "seconds")
    }
    assert content["entries"] == [
        {"pod": "there", "node": a, "runsOn": a, "standing": "there"},
        {"pod": "elsewhere", "node": a, "runsOn": b, "standing": "elsewhere"},
        {"pod": "waits", "node": b, "runsOn": "", "standing": "pending"},
        {"pod": "gone", "node": b, "runsOn": "", "standing": "missing"},
    ]
    assert content["withoutEntry"] == [{"pod": "late", "runsOn": ""}]
    assert content["unplaced"] == STATUS["unplaced"]
    assert [each["type"] for each in content["conditions"]] == ["Complete"]
    loads = {node["name"]: (node["now"]["cpu"], node["planned"]["cpu"]) for node in content["nodes"]}
    assert (loads[a], loads[b]) == ((1000, 1000), (1000, 2000))


def test_a_stored_plan_for_people(stage: Stage) -> None:
    a, b, _ = stage.nodes
    carry_out_half(stage)
    done = stage.run("plan", "batch", "--all")
    assert (done.returncode, done.stderr) == (0, "")
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    name = plan_name(stage.namespace, "batch")
    assert lines[:3] == [
        f"plan {name} of set {stage.namespace}/batch, by planner built-in in 0.012 s",
        "objective 0.5, bound 0.4, gap 20.0%",
        "pods on their planned node: 1 of 4",
    ]
    for line in (
        f"there {a} yes",
        f"elsewhere {a} no: on {b}",
        f"waits {b} pending",
        f"gone {b} no such pod",
        "not in the plan: late (pending)",
        "big-0, big-1: 0/3 nodes are available: 3 Insufficient cpu.",
        "Complete False PodsLeftOut 2 of 6",
        f"{b} 1 → 2 ████▓▓▓▓▓░░░░░░░░░ 25% → 50% ░░░░░░░░░░░░░░░░░░ 0%",
    ):
        assert line in lines


def test_a_set_without_a_plan_says_what_holds_it(stage: Stage) -> None:
    stage.create(trigger(), stage.member("one"))
    error = the_error(stage.run("plan", "batch"))
    assert f"pod set batch in namespace {stage.namespace} has no plan: pod set batch is held by its" in error
    assert "--preview shows what would be planned now" in error


def test_a_set_that_does_not_exist(stage: Stage) -> None:
    stage.create(stage.member("one"), trigger("go", "letters"))
    for arguments in (("plan", "sheep"), ("plan", "sheep", "--preview")):
        error = the_error(stage.run(*arguments))
        assert f"there is no pod set sheep in namespace {stage.namespace}: it has batch, letters" in error


# Previews.


async def test_a_preview_is_what_the_planner_plans_and_nothing_is_written(stage: Stage) -> None:
    stage.create(
        trigger(objective="Pack"),
        *(stage.member(f"small-{number}") for number in range(5)),
        stage.member("large", cpu="3"),
        stage.member("huge", cpu="9"),
    )
    before = stage.versions()
    content = as_json(stage.run("plan", "batch", "--preview", "-o", "json"))
    assert stage.versions() == before

    async with Client(load(stage.plane.kubeconfig)) as client:
        snapshot = await take_all(client)
    engine = Engine(default_configuration(SCHEDULER_NAME))
    for thing in snapshot.objects:
        engine.receive(Change(None, thing), now=0.0)
    members = [
        PodInfo.of(thing)
        for thing in snapshot.objects
        if isinstance(thing, Pod)
        and thing.metadata.namespace == stage.namespace
        and thing.metadata.labels.get(POD_SET_LABEL) == "batch"
    ]
    problem = Problem(engine.chooser(SCHEDULER_NAME), members, objective="Pack")
    plan = greedy.plan(problem, clock=time.monotonic)
    assert [(f"{stage.namespace}/{each['pod']}", each["node"]) for each in content["assignments"]] == [
        (each.pod, each.node) for each in plan.assignments
    ]
    assert [each["reason"] for each in content["leftOut"]] == [each.reason for each in plan.left_out]
    assert content["wanted"] == {"objective": "Pack", "allOrNothing": False, "budget": 0.3}


def test_a_preview_for_people(stage: Stage) -> None:
    stage.create(trigger(), stage.member("one", cpu="2"), stage.member("huge", cpu="9"))
    done = stage.run("plan", "batch", "--preview", "--budget", "2s", "--objective", "Pack")
    assert (done.returncode, done.stderr) == (0, "")
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert lines[0] == f"preview of set {stage.namespace}/batch; nothing is written"
    assert lines[1] == "pod set batch is held by its trigger go until its state is Schedule"
    assert lines[2].startswith("planned to Pack, in ")
    assert lines[2].endswith(" s of 2s")
    [(_, node)] = [line.split() for line in lines if line.startswith("one ")]
    assert node in stage.nodes
    assert "no node for:" in lines
    assert any(line.startswith("huge: 0/") and "Insufficient cpu" in line for line in lines)
    assert f"{node} 0 → 1 ▓▓▓▓▓▓▓▓▓░░░░░░░░░ 0% → 50% ░░░░░░░░░░░░░░░░░░ 0%" in lines


def test_a_preview_where_no_pod_waits(stage: Stage) -> None:
    stage.create(trigger(), stage.member("one"))
    stage.bind({"one": stage.nodes[0]})
    done = stage.run("plan", "batch", "--preview")
    assert done.returncode == 0
    assert "no pod of the set is waiting for a plan" in done.stdout


# Rights.


@pytest.mark.parametrize(
    ("rules", "arguments", "missing"),
    [
        ((), (), "you need permission to list pods in namespace"),
        ((READ_PODS,), (), "you need permission to list scheduletriggers.planner.ciena.io in namespace"),
        ((READ_PODS, READ_SETS), ("--preview",), "nodes left out: nodes is forbidden"),
    ],
)
def test_a_right_that_is_missing_is_named(
    stage: Stage, rules: tuple[tuple[str, str, str], ...], arguments: tuple[str, ...], missing: str
) -> None:
    stage.create(trigger(), stage.member("one"))
    error = the_error(stage.run("plan", "batch", *arguments, kubeconfig=stage.caller(*rules)))
    assert missing in error


def test_a_plan_is_shown_without_loads_to_users_without_the_right_to_nodes(stage: Stage) -> None:
    stage.create(stage.member("one"), stage.plan({"one": stage.nodes[0]}))
    done = stage.run("plan", "batch", kubeconfig=stage.caller(READ_PODS, READ_SETS))
    assert done.returncode == 0
    assert done.stderr.startswith("warning: node loads are not shown: nodes left out: nodes is forbidden")
    assert done.stdout.splitlines()[-1].split() == ["one", stage.nodes[0], "pending"]


def test_a_preview_with_the_right_to_read_alone_warns_of_what_it_lacks(stage: Stage) -> None:
    stage.create(trigger(), stage.member("one"))
    done = stage.run("plan", "batch", "--preview", kubeconfig=stage.caller(READ_PODS, READ_SETS, READ_NODES))
    assert done.returncode == 0
    assert "warning: persistentvolumeclaims left out: " in done.stderr
    assert any(line.split() and line.split()[0] == "one" for line in done.stdout.splitlines())
