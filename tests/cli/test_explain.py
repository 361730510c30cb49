"""`longshore explain` with a recorded file: a small cluster with a pod for each kind of answer."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from longshore.api import ObjectMeta, SchedulePlan, ScheduleTrigger
from longshore.api.pod_set import (
    POD_SET_LABEL,
    SCHEDULE,
    PlanEntry,
    SchedulePlanSpec,
    SchedulePlanStatus,
    ScheduleTriggerSpec,
    UnplacedPod,
    plan_name,
)
from longshore.ask.snapshot import Snapshot
from longshore.ask.snapshot_file import read, save
from longshore.testing import PodBuilder, node, pdb, pod

ZONE = "topology.kubernetes.io/zone"


def member(name: str, *, podset: str) -> PodBuilder:
    made = pod(name, namespace="shop").requests(cpu="3").scheduler("podset-planner-scheduler")
    return made.labels(**{POD_SET_LABEL: podset})


def trigger(name: str, *, podset: str, state: str) -> ScheduleTrigger:
    meta = ObjectMeta(name=name, namespace="shop", labels={POD_SET_LABEL: podset})
    return ScheduleTrigger(metadata=meta, spec=ScheduleTriggerSpec(state=state))


CLUSTER = (
    node("a1").allocatable(cpu="4", memory="16Gi").labels(**{ZONE: "a"}),
    node("a2").allocatable(cpu="8", memory="16Gi").labels(**{ZONE: "a"}),
    node("b1").allocatable(cpu="8", memory="32Gi").labels(**{ZONE: "b"}),
    node("b2").allocatable(cpu="8", memory="32Gi").labels(**{ZONE: "b"}).unschedulable(),
    node("gpu").allocatable(cpu="16", memory="64Gi").taint("gpu"),
    pod("web", namespace="shop").requests(cpu="1", memory="1Gi").labels(app="web"),
    pod("cart", namespace="shop").requests(cpu="2", memory="2Gi").on("a2").phase("Running"),
    pod("db", namespace="shop").requests(cpu="6", memory="8Gi").on("b1").phase("Running"),
    pod("mail", namespace="shop").requests(cpu="1", memory="1Gi").on("b1").phase("Running"),
    pod("report", namespace="shop").requests(cpu="7", memory="4Gi").priority(1000),
    pod("gated", namespace="shop").gates("quota"),
    pod("foreign", namespace="shop").scheduler("default-scheduler"),
    pdb("db", namespace="shop", app="db"),
    member("held", podset="batch"),
    trigger("evening", podset="batch", state="Planning"),
    member("planned", podset="burst"),
    member("placed", podset="burst").on("gpu").phase("Running"),
    member("unplaced", podset="burst"),
    member("new", podset="burst"),
    trigger("now", podset="burst", state=SCHEDULE),
    SchedulePlan(
        metadata=ObjectMeta(name=plan_name("shop", "burst"), namespace="shop"),
        spec=SchedulePlanSpec((PlanEntry("planned", "a2"), PlanEntry("placed", "gpu"))),
        status=SchedulePlanStatus(unplaced=(UnplacedPod("unplaced", "Insufficient cpu"),)),
    ),
    member("unwatched", podset="forgotten"),
)
EXPLAIN = Path(__file__).parents[2] / "docs" / "explain.md"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "cluster.jsonl"
    save(Snapshot(CLUSTER), str(path))
    return path


def explain(*arguments: object, cwd: Path | None = None) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "longshore", "explain", *map(str, arguments)],
        capture_output=True,
        encoding="utf-8",
        check=False,
        cwd=cwd,
    )


def as_json(file: Path, name: str, *more: str) -> dict[str, Any]:
    answer: dict[str, Any] = whole_json(file, name, *more)["now"]
    return answer


def whole_json(file: Path, name: str, *more: str) -> dict[str, Any]:
    done = explain(name, "-n", "shop", "--record", file, "-o", "json", *more)
    assert (done.returncode, done.stderr) == (0, "")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_a_saved_cluster_is_the_same_when_it_is_read(file: Path) -> None:
    again = read(str(file)).objects
    assert [type(thing).__name__ for thing in again[:6]] == ["Node"] * 5 + ["Pod"]
    assert msgspec.to_builtins(again) == msgspec.to_builtins(CLUSTER)


def test_the_page_shows_the_output(file: Path) -> None:
    blocks = re.findall(r"^```console\n(.*?)^```", EXPLAIN.read_text(), flags=re.MULTILINE | re.DOTALL)
    shown = [block.partition("\n") for block in blocks if block.startswith("$ longshore explain")]
    assert len(shown) == 4
    for command, _, expected in shown:
        arguments = command.removeprefix("$ longshore explain ").split()
        assert explain(*arguments, cwd=file.parent).stdout.rstrip() == expected.rstrip()


def test_json_has_every_node_with_every_plugin(file: Path) -> None:
    answer = as_json(file, "web")
    explanation = answer["explanation"]
    assert explanation["feasible"] == ["a1", "a2", "b1"]
    for name, total in explanation["totals"].items():
        assert sum(explanation["scores"][name].values()) == total
        assert set(explanation["scores"][name]) <= set(answer["weights"])
    assert explanation["rejected"]["gpu"]["plugin"] == "TaintToleration"
    assert answer["weights"]["TaintToleration"] == 3
    assert (answer["preemption"], answer["rank"]) == (None, 0)


def test_a_pod_that_has_a_node_does_not_block_itself(file: Path) -> None:
    answer = as_json(file, "db")
    assert answer["explanation"]["feasible"] == ["a2", "b1"]
    assert (answer["pod"]["node"], answer["rank"]) == ("b1", 1)


def test_explain_shows_what_preemption_would_do(file: Path) -> None:
    answer = as_json(file, "report")
    assert answer["explanation"]["feasible"] == []
    assert answer["preemption"] == {"node": "a2", "victims": ["shop/cart"], "message": ""}


def test_a_gated_pod_is_explained_and_its_gate_named(file: Path) -> None:
    answer = as_json(file, "gated")
    assert answer["gatedBy"] == "SchedulingGates: waiting for scheduling gates: [quota]"
    assert answer["explanation"]["feasible"] == ["a1", "a2", "b1"]


def test_explain_uses_the_pod_set_profile_and_names_the_trigger(file: Path) -> None:
    answer = as_json(file, "held")
    held = "pod set batch is held by its trigger evening until its state is Schedule"
    assert answer["profile"] == "podset-planner-scheduler"
    assert answer["gatedBy"] == f"PodSetPlanner: {held}"
    assert answer["podSet"] == {
        "podSet": "batch",
        "trigger": "evening",
        "state": "Planning",
        "waits": held,
        "plan": "",
        "plannedNode": "",
        "unplaced": "",
    }
    assert answer["explanation"]["feasible"] == ["a1", "a2"]


def test_a_pod_of_a_set_without_a_trigger(file: Path) -> None:
    gate = as_json(file, "unwatched")["gatedBy"]
    assert gate == "PodSetPlanner: no trigger of pod set forgotten was found"


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("planned", "planned for a2 by plan {plan}"),
        ("placed", "planned for gpu by plan {plan}"),
        ("unplaced", "plan {plan} has no node for this pod: Insufficient cpu"),
        ("new", "kept out of the queue by PodSetPlanner: the pod's set is being planned"),
    ],
)
def test_explain_shows_what_the_plan_says_about_the_pod(file: Path, name: str, line: str) -> None:
    done = explain(f"shop/{name}", "--record", file)
    assert (done.returncode, done.stderr) == (0, "")
    told = [each.strip() for each in done.stdout.partition("as the cluster is now")[2].splitlines()]
    assert told[1] == line.format(plan=plan_name("shop", "burst"))


def test_without_a_profile_of_sets_a_pod_of_one_is_like_any_other(file: Path, tmp_path: Path) -> None:
    config = tmp_path / "scheduler.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{schedulerName: podset-planner-scheduler}]\n"
    )
    answer = as_json(file, "held", "--config", str(config))
    assert (answer["gatedBy"], answer["podSet"]) == ("", None)


def test_json_has_the_warnings_that_people_would_read(file: Path) -> None:
    (warning,) = whole_json(file, "foreign")["warnings"]
    assert warning.startswith("the pod belongs to scheduler default-scheduler")


def test_a_pod_of_another_scheduler_is_explained_with_the_first_profile(file: Path) -> None:
    done = explain("shop/foreign", "--record", file)
    assert done.returncode == 0
    assert done.stdout.startswith("pod shop/foreign: pending; scheduler default-scheduler\n")
    assert done.stderr == (
        "warning: the pod belongs to scheduler default-scheduler, which may decide differently: "
        "this answer is for profile longshore\n"
    )


def test_the_profile_of_the_pod_is_used(file: Path, tmp_path: Path) -> None:
    config = tmp_path / "scheduler.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles:\n- schedulerName: longshore\n- schedulerName: default-scheduler\n"
        "  plugins: {score: {disabled: [{name: '*'}], enabled: [{name: ImageLocality, weight: 7}]}}\n"
    )
    answer = as_json(file, "foreign", "--config", str(config))
    assert (answer["profile"], answer["weights"]) == ("default-scheduler", {"ImageLocality": 7})
    assert answer["warnings"] == []


def test_custom_plugins_are_evaluated(file: Path, tmp_path: Path) -> None:
    plugin = tmp_path / "only_b.py"
    plugin.write_text(
        "from longshore.framework import filter_plugin\n\n\n@filter_plugin\ndef only_b(pod, node):\n"
        "    return None if node.name.startswith('b') else 'node(s) were not of zone b'\n"
    )
    answer = as_json(file, "web", "--plugin", str(plugin))
    assert answer["explanation"]["feasible"] == ["b1"]
    assert answer["explanation"]["rejected"]["a1"]["reasons"] == ["node(s) were not of zone b"]


def test_many_nodes_are_cut_short_unless_all_are_wanted(tmp_path: Path) -> None:
    file = tmp_path / "many.jsonl"
    names = [f"n{number:02}" for number in range(20)]
    full = [node(name).taint("full").allocatable(cpu="1") for name in names]
    roomy = [node(f"r{number:02}").allocatable(cpu=str(number + 2)) for number in range(20)]
    last = pod("web").requests(cpu="1").on("r00")
    save(Snapshot((*full, *roomy, last)), str(file))
    some = explain("web", "--record", file).stdout
    rows = re.findall(r"^[> ]  (r\d\d) ", some, flags=re.MULTILINE)
    assert len(rows) == 11
    assert rows[-1] == "r00"
    assert "\n   and 9 more: --all shows them\n" in some
    assert "(n00, n01, n02, n03, n04 and 15 more)" in some
    everything = explain("web", "--record", file, "--all").stdout
    assert len(re.findall(r"^[> ]  r\d\d ", everything, flags=re.MULTILINE)) == 20
    assert all(name in everything for name in names)


def test_lists_of_kubectl_are_read(tmp_path: Path) -> None:
    file = tmp_path / "kubectl.json"
    items = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "n1"},
            "status": {"allocatable": {"cpu": "2"}},
        },
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"}, "data": {"a": "b"}},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "default"}},
    ]
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}, indent=4))
    assert [thing.key for thing in read(str(file)).objects] == ["n1", "default/web"]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b'{"kind": "Pod"}\n{"kind": ', "line 2: Input data was truncated"),
        (b'{"kind": "Pod", "metadata": {"name": "web"}, "spec": 7}', "Pod web: Expected `object`"),
        (b'{"items": ["web"]}', "'web' is not an object"),
        (b'["web"]', "['web'] is not an object"),
    ],
)
def test_a_file_that_cannot_be_parsed_is_one_line(tmp_path: Path, content: bytes, problem: str) -> None:
    file = tmp_path / "broken.json"
    file.write_bytes(content)
    done = explain("web", "--record", file)
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: {file}: ")
    assert problem in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("nothing", "-n", "shop"), "has no pod nothing in namespace shop; -n chooses another namespace"),
        (("web",), "has no pod web in namespace default; -n chooses another namespace"),
        (("web", "--scheduler", "http://localhost:1"), "--record and --scheduler cannot be combined"),
    ],
)
def test_an_invalid_question_is_one_line(file: Path, arguments: tuple[str, ...], problem: str) -> None:
    done = explain(*arguments, "--record", file)
    assert done.returncode == 1
    assert problem in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    done = explain("web", "--record", tmp_path / "nothing")
    assert done.returncode == 1
    assert done.stderr == f"error: cannot read {tmp_path / 'nothing'}: No such file or directory\n"
