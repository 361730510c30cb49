"""`longshore agent`: the skeleton of a new agent works without changes, and bad names are refused."""

import ast
import json
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.deploy.extender_manifests import Manifest
from tests.deploy.test_extenders import generic, manifest
from tests.waiting import eventually

from longshore.cli.agent import command
from longshore.cluster import ClusterState, PodInfo
from longshore.config.registry import load_plugins
from longshore.framework import CycleState
from longshore.serve.extender import agent_choice
from longshore.sim import schedule
from longshore.testing import node, pod


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *arguments], cwd=cwd, capture_output=True, text=True, check=False, timeout=120
    )


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a new agent, next to no other file."""
    folder = tmp_path_factory.mktemp("new")
    done = run("longshore", "agent", "new", "calm-nodes", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "wrote calm-nodes/calm_nodes.py",
        "wrote calm-nodes/test_calm_nodes.py",
        "wrote calm-nodes/extender.calm-nodes.yaml",
        "wrote calm-nodes/calm-nodes.md",
        "next: python -m pytest calm-nodes",
    ]
    return folder / "calm-nodes"


def test_the_test_of_a_new_agent_passes_as_written(written: Path) -> None:
    done = run("pytest", "-q", "calm-nodes", cwd=written.parent)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "6 passed" in done.stdout


def test_a_new_agent_is_a_plugin_of_a_simulation(written: Path) -> None:
    plugin = load_plugins([str(written / "calm_nodes.py")])["CalmNodes"].thing
    placed = schedule(
        nodes=[node(name).allocatable(cpu="4") for name in ("a", "b")],
        pods=[pod("web").requests(cpu="1")],
        plugins=[plugin],
        measured={"cpu/mean": {"a": 3500, "b": 2000}},
    )
    assert placed == {"web": "b"}
    assert plugin.verb == "calm-nodes"


@pytest.fixture(scope="module")
def served(written: Path) -> Iterator[str]:
    """The URL at which the new agent answers, without a cluster."""
    log = written.parent / "extender.log"
    serving = re.compile(r'"port":(\d+).*"event":"serving"')
    command = ["extender", "--agents", "./calm-nodes/calm_nodes.py", "--port", "0", "--standalone"]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "longshore", *command, "--bind-address", "127.0.0.1"],
            cwd=written.parent,
            env={**os.environ, "CALM_NODES_MAX_UTILIZATION": "60"},
            stderr=output,
        )
    try:
        eventually(
            lambda: (log.read_text(), process.poll()),
            lambda found: serving.search(found[0]) or found[1] is not None,
            within=30,
        )
        found = serving.search(log.read_text())
        assert found is not None, log.read_text()
        yield f"http://127.0.0.1:{found[1]}/scheduler"
    finally:
        process.terminate()
        process.wait(20)


def ask(url: str, nodes: dict[str, str]) -> Any:
    """Ask about a pod that requests 500m and nodes of 4 CPUs, given the CPU that is free on each."""
    items = [
        {
            "metadata": {"name": name, "annotations": {"mean-free-cpu": free}},
            "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
        }
        for name, free in nodes.items()
    ]
    container = {"name": "main", "resources": {"requests": {"cpu": "500m"}}}
    asked = {
        "Pod": {"metadata": {"name": "web", "namespace": "default"}, "spec": {"containers": [container]}},
        "Nodes": {"items": items},
        "NodeNames": None,
    }
    request = urllib.request.Request(url, json.dumps(asked).encode())  # noqa: S310 - ours
    with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310 - ours
        return json.loads(answer.read())


def test_a_new_agent_answers_the_requests_of_a_kube_scheduler(served: str) -> None:
    """2000m of 4000m in use are 62.5 % with the pod, and the variable says 60."""
    nodes = {"busy": "2000", "calm": "3500"}
    filtered = ask(f"{served}/predicates/calm-nodes", nodes)
    assert [item["metadata"]["name"] for item in filtered["Nodes"]["items"]] == ["calm"]
    assert filtered["FailedAndUnresolvableNodes"] == {"busy": "node(s) would be too busy for calm-nodes"}
    ranked = ask(f"{served}/priorities/calm-nodes", nodes)
    assert {each["Host"]: each["Score"] for each in ranked} == {"busy": 4, "calm": 8}


def test_the_example_on_the_page_of_a_new_agent_is_true(written: Path) -> None:
    """A node of 4 CPUs that uses 2000m and a pod that requests 500m: 62.5 % used, so the score is 37."""
    text = (written / "calm-nodes.md").read_text()
    assert "100 * 2500 / 4000 = 62.5" in text
    assert "scores 37; kube-scheduler gets 4 of 10" in text
    plugin = load_plugins([str(written / "calm_nodes.py")])["CalmNodes"].thing()
    cluster = ClusterState()
    cluster.add_node(node("n").allocatable(cpu="4"))
    cluster.measures.put({"cpu/mean": {"n": (2000.0, 0.0)}}, now=0.0)
    [score] = plugin.score(CycleState(), PodInfo.of(pod("web").requests(cpu="500m")), cluster.all_nodes())[:1]
    assert score == 37


def test_the_manifest_of_a_new_agent_is_like_ours(written: Path) -> None:
    """Only the volume with the agent's file differs."""
    found = Manifest.read(written / "extender.calm-nodes.yaml")
    container = found.extenders["my-extender-ctr-1"]
    [mount] = container.pop("volumeMounts")
    volume = found.pod["volumes"].pop()
    assert volume == {"name": mount["name"], "configMap": {"name": "calm-nodes-agent"}}
    assert container["args"] == ["extender", f"--agents={mount['mountPath']}/calm_nodes.py"]
    assert generic(found) == generic(manifest("safe"))


def test_the_generated_code_is_formatted_and_passes_the_linter(written: Path) -> None:
    for arguments in (["format", "--check"], ["check", "--select", "E,F,W,N,UP,B"]):
        isolated = ["--isolated", "--line-length", "110", "--target-version", "py311"]
        done = run("ruff", *arguments, *isolated, ".", cwd=written)
        assert done.returncode == 0, done.stdout


def test_existing_files_are_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "calm.md").write_text("mine")
    done = run("longshore", "agent", "new", "calm", "--folder", str(tmp_path), cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: {tmp_path / 'calm.md'} already exists")
    assert [file.name for file in tmp_path.iterdir()] == ["calm.md"]


def test_a_folder_that_cannot_be_written_to_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = run("longshore", "agent", "new", "calm", "--folder", str(tmp_path / "file"), cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("error: cannot write ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("Calm", "is not a valid name for an agent"),
        ("calm_nodes", "is not a valid name for an agent"),
        ("-calm", "No such option"),
        ("calm-", "is not a valid name for an agent"),
        ("../calm", "is not a valid name for an agent"),
        ("c" * 41, "at most 40"),
        ("", "is not a valid name for an agent"),
        ("class", "class is a Python keyword or module"),
        ("json", "json is a Python keyword or module"),
        ("safe", "is already installed"),
        ("all", "is already installed"),
        ("node-name", "the plugin would be named NodeName"),
        ("safe-overload", "the plugin would be named SafeOverload"),
        ("none", "the plugin would be named None, which its code already uses"),
        ("type-error", "the plugin would be named TypeError, which its code already uses"),
        ("rejection", "the plugin would be named Rejection, which its code already uses"),
        ("p-o-d", "the plugin would be named POD, which its code already uses"),
    ],
)
def test_an_invalid_agent_name_is_one_line(tmp_path: Path, name: str, reason: str) -> None:
    done = run("longshore", "agent", "new", name, cwd=tmp_path)
    assert done.returncode == 2
    assert reason in done.stderr
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_names_in_the_skeleton_cannot_be_the_class_name(written: Path) -> None:
    modules = [ast.parse(file.read_text()) for file in written.glob("*.py")]
    found = [each for module in modules for each in ast.walk(module)]
    used = {each.id for each in found if isinstance(each, ast.Name)}
    used |= {each.asname or each.name for each in found if isinstance(each, ast.alias)}
    classes = {name for name in used if re.fullmatch("(?!CalmNodes)[A-Z][A-Za-z]*", name)}
    assert classes >= {"Rejection", "Missing", "Any", "PodInfo", "NODES"}
    for plugin in classes:
        name = re.sub(r"\B(?=[A-Z])", "-", plugin).lower()
        done = CliRunner().invoke(command, ["new", name, "--folder", str(written / "none")])
        assert f"the plugin would be named {plugin}, " in done.stderr
    assert not (written / "none").exists()


def test_list_shows_every_agent_with_its_verbs() -> None:
    done = CliRunner().invoke(command, ["list", "-o", "json"])
    found = {agent["agent"]: agent for agent in json.loads(done.stdout)}
    assert not [agent for agent in found.values() if "problem" in agent]
    assert {name: [each["verb"] for each in agent["plugins"]] for name, agent in found.items()} == {
        "congestion": ["congestion"],
        "foo": ["foo"],
        "load-variation-risk-balancing": ["load-variation-risk-balancing"],
        "low-risk-over-commitment": ["low-risk-over-commitment"],
        "pigeon": ["pigeon-holing"],
        "reward": ["rl-priority"],
        "safe": ["safe-overload", "safe-balance"],
        "target-load-packing": ["target-load-packing"],
    }
    answers = {each["verb"]: each["answers"] for agent in found.values() for each in agent["plugins"]}
    assert answers["safe-overload"] == ["predicates", "priorities"]
    assert answers["safe-balance"] == ["priorities"]


def test_list_continues_after_a_broken_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = EntryPoint("broken", "longshore.agents.no_such_module", "longshore.agents")
    whole = EntryPoint("foo", "longshore.agents.foo", "longshore.agents")
    monkeypatch.setattr(agent_choice, "entry_points", lambda **_: EntryPoints([broken, whole]))
    done = CliRunner().invoke(command, ["list"])
    assert done.exit_code == 0
    assert "Foo" in done.stdout
    assert done.stderr.startswith("warning: agent broken cannot be used: ")
    assert "ModuleNotFoundError" in done.stderr
