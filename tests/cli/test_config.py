"""`longshore config check`: its output for valid and invalid files."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

GOOD = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
profiles:
- schedulerName: bin-packing
  plugins:
    score: {disabled: [{name: ImageLocality}]}
    multiPoint: {enabled: [{name: GangScheduling}]}
  pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated}}
- schedulerName: anywhere
  plugins:
    score: {disabled: [{name: "*"}]}
"""
BAD = GOOD.replace("MostAllocated", "Most").replace("name: ImageLocality", "weight: 1")
PROBLEMS = [
    'profiles[0].plugins.score.disabled[0].name: missing; it must be the name of a plugin, or "*" for all',
    "profiles[0].pluginConfig[0].args.scoringStrategy.type: "
    'must be LeastAllocated, MostAllocated or RequestedToCapacityRatio, found the text "Most"',
]
WARNING = "GangScheduling: accepted, but has no effect in Longshore yet"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "scheduler.yaml"


def check(*arguments: object) -> "subprocess.CompletedProcess[str]":
    return longshore("config", "check", *arguments)


def longshore(*arguments: object) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "longshore", *map(str, arguments)],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


def test_a_valid_file_shows_the_plugins_of_each_profile_and_its_warnings(file: Path) -> None:
    file.write_text(GOOD)
    done = check(file)
    assert done.returncode == 0
    assert done.stderr == f"warning: {file}: {WARNING}\n"
    lines = [line.rstrip() for line in done.stdout.splitlines()]
    assert lines[0] == f"{file}: valid"
    assert "profile bin-packing" in lines
    assert "score       TaintToleration=3, NodeAffinity=2, NodeResourcesFit=1," in lines
    assert "bind        DefaultBinder" in lines
    second = lines[lines.index("profile anywhere") :]
    assert not any(line.startswith("score ") for line in second)
    assert max(map(len, lines[1:])) <= 80


def test_an_invalid_file_gets_a_line_for_each_problem(file: Path) -> None:
    file.write_text(BAD)
    done = check(file)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.splitlines() == [
        f"warning: {file}: {WARNING}",
        *(f"error: {file}: {problem}" for problem in PROBLEMS),
    ]


def test_json_of_a_valid_file(file: Path) -> None:
    file.write_text(GOOD)
    done = check(file, "-o", "json")
    assert (done.returncode, done.stderr) == (0, "")
    result = json.loads(done.stdout)
    assert result["valid"] is True
    assert result["warnings"] == [WARNING]
    first, second = result["profiles"]
    assert first["schedulerName"] == "bin-packing"
    assert first["points"]["score"][0] == {"name": "TaintToleration", "weight": 3}
    assert first["args"]["NodeResourcesFit"]["scoringStrategy"]["type"] == "MostAllocated"
    assert second["points"]["score"] == []


def test_json_of_an_invalid_file(file: Path) -> None:
    file.write_text(BAD)
    done = check(file, "-o", "json")
    assert (done.returncode, done.stderr) == (1, "")
    assert json.loads(done.stdout) == {"valid": False, "problems": PROBLEMS, "warnings": [WARNING]}


def test_a_file_that_is_not_there_gets_one_line(file: Path) -> None:
    done = check(file)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"error: cannot read the configuration {file}: No such file or directory\n"


def test_a_file_may_enable_plugins_from_itself_and_from_the_command_line(file: Path) -> None:
    function = "from longshore.framework import score_plugin\n@score_plugin\ndef {}(pod, node): return 0\n"
    (file.parent / "found.py").write_text(function.format("found"))
    (file.parent / "given.py").write_text(function.format("given"))
    enabled = "plugins: {score: {enabled: [{name: Found, weight: 2}, {name: Given, weight: 3}]}}"
    file.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        f"longshore: {{plugins: [found.py]}}\nprofiles: [{{{enabled}}}]\n"
    )
    without = check(file)
    assert (without.returncode, without.stdout) == (1, "")
    assert 'unknown plugin "Given"' in without.stderr
    done = check(file, "--plugin", file.parent / "given.py")
    assert (done.returncode, done.stderr.count("error")) == (0, 0)
    assert "Found=2, Given=3" in done.stdout


PICKY = """
class Picky:
    name = "Picky"
    def __init__(self, args): args["size"]
    def permit(self, state, pod, node): ...
"""
HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
SETS = "schedulerName: sets, plugins: {multiPoint: {enabled: [{name: PodSetPlanner}]}}"


@pytest.mark.parametrize(
    ("profiles", "problem"),
    [
        (
            f"[{{schedulerName: a}}, {{{SETS}, pluginConfig: [{{name: NodeResourcesFit}}, "
            "{name: PodSetPlanner, args: {nonsense: 3}}]}]",
            "profiles[1].pluginConfig[1].args.nonsense: unknown field",
        ),
        (
            "[{schedulerName: a, pluginConfig: [{name: Picky, args: {size: 1}}]}, {schedulerName: b}]",
            "profiles[1]: {plugin}:2: Picky cannot be made: KeyError: 'size'",
        ),
    ],
)
def test_check_reports_a_broken_plugin_as_run_does(file: Path, profiles: str, problem: str) -> None:
    plugin = file.parent / "picky.py"
    plugin.write_text(PICKY)
    file.write_text(f"{HEAD}leaderElection: {{leaderElect: false}}\nprofiles: {profiles}\n")
    given = ("--plugin", plugin) if "Picky" in profiles else ()
    problem = problem.format(plugin=plugin)
    for command in (("config", "check", file), ("run", "--config", file, "--kubeconfig", "/no/such")):
        done = longshore(*command, *given)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr == f"error: {file}: {problem}\n"
    told = json.loads(check(file, *given, "-o", "json").stdout)
    assert (told["valid"], told["problems"]) == (False, [problem])


def test_a_profile_with_the_pod_set_name_but_without_the_plugin_is_a_warning(file: Path) -> None:
    head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    file.write_text(head + "profiles: [{schedulerName: podset-planner-scheduler}]\n")
    done = check(file)
    assert done.returncode == 0
    assert "pods of sets are not held or planned" in done.stderr
