"""`longshore plugins`: which plugins are called at each extension point."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
PLUGIN = """
from longshore.framework import score_plugin

@score_plugin(weight=4)
def mine(pod, node):
    return 1
"""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(PLUGIN)


def plugins(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "longshore", "plugins", *arguments],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


def lines(done: "subprocess.CompletedProcess[str]") -> list[list[str]]:
    assert done.returncode == 0, done.stderr
    return [line.split() for line in done.stdout.splitlines()]


def test_the_default_profile_in_the_order_of_the_points() -> None:
    shown = lines(plugins())
    assert shown[0] == ["profile", "longshore"]
    assert shown[1] == ["point", "plugin", "weight", "from"]
    assert shown[2] == ["preEnqueue", "SchedulingGates", "longshore"]
    assert ["filter", "NodeUnschedulable", "longshore"] in shown
    assert ["score", "TaintToleration", "3", "longshore"] in shown
    assert ["bind", "DefaultBinder", "longshore"] in shown


def test_a_point_shows_only_plugins_that_are_called_there() -> None:
    """kube-scheduler calls NodePorts at preFilter; Longshore's NodePorts has no work there."""
    profile, _ = json.loads(plugins("-o", "json").stdout)["profiles"]
    assert "NodePorts" not in [plugin["name"] for plugin in profile["points"]["preFilter"]]
    assert "NodePorts" in [plugin["name"] for plugin in profile["points"]["filter"]]


def test_the_profile_for_pod_sets_exists_as_in_run() -> None:
    content = json.loads(plugins("--plugin", "mine.py", "-o", "json").stdout)
    _, sets = content["profiles"]
    assert sets["schedulerName"] == "podset-planner-scheduler"
    assert {"name": "PodSetPlanner", "source": "longshore"} in sets["points"]["postFilter"]
    assert sets["points"]["score"][-1]["name"] == "Mine"


def test_a_given_plugin_comes_last_with_its_weight_and_its_file() -> None:
    shown = lines(plugins("--plugin", "mine.py"))
    last = shown[shown.index(["reserve", "VolumeBinding", "longshore"]) - 1]
    assert last == ["Mine", "4", "mine.py"]


def test_the_profiles_of_a_configuration_and_a_plugin_that_is_not_enabled() -> None:
    Path("scheduler.yaml").write_text(
        HEAD + "longshore: {plugins: [mine.py]}\nprofiles: [{schedulerName: a}, {schedulerName: b}]\n"
    )
    shown = lines(plugins("--config", "scheduler.yaml"))
    assert ["profile", "a"] in shown
    assert ["profile", "b"] in shown
    assert shown[-1] == ["not", "enabled:", "Mine", "(mine.py)"]


def test_json_has_points_weights_and_sources() -> None:
    done = plugins("--plugin", "mine.py", "-o", "json")
    content = json.loads(done.stdout)
    profile, _ = content["profiles"]
    assert profile["schedulerName"] == "longshore"
    assert profile["points"]["score"][-1] == {"name": "Mine", "source": "mine.py", "weight": 4}
    assert profile["points"]["bind"] == [{"name": "DefaultBinder", "source": "longshore"}]
    assert content["notEnabled"] == []


def test_a_plugin_that_cannot_be_loaded_is_one_line() -> None:
    done = plugins("--plugin", "none.py")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "error: cannot read the plugins in none.py: no such file\n"


def test_a_plugin_that_cannot_be_created_is_one_line() -> None:
    Path("bad.py").write_text(
        "class Bad:\n    name = 'Bad'\n    def __init__(self, args): args['x']\n"
        "    def permit(self, state, pod, node): ...\n"
    )
    done = plugins("--plugin", "bad.py")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "error: bad.py:1: Bad cannot be made: KeyError: 'x'\n"
