"""The demo: what it prints, in a terminal and into a pipe."""

import json
import os
import re
import subprocess
import sys

import pytest
from click.testing import CliRunner

from longshore.cli.demo import command


def printed(*arguments: str) -> str:
    result = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def longshore_demo(*arguments: str, encoding: str = "utf-8") -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "longshore", "demo", *arguments],
        check=False,
        capture_output=True,
        encoding=encoding,
        env={**os.environ, "PYTHONIOENCODING": encoding},
    )


def test_a_bar_for_each_node_and_what_became_of_the_pods() -> None:
    text = printed("--nodes", "3", "--pods", "60")
    assert re.findall(r"^node-\d+ +\d+ +[█░]{18} +\d+% +[█░]{18} +\d+%", text, re.MULTILINE)[2:]
    counts = re.search(r"pods +(\d+) bound, (\d+) pending, (\d+) preempted", text)
    assert counts is not None
    assert sum(map(int, counts.groups())) == 60
    assert re.search(r"pods: 0/3 nodes are available: .*Insufficient cpu", text)
    assert re.search(r"decisions +[\d,]+, [\d,]+ a second", text)
    assert re.search(r"virtual time +[23]\d\.\d s", text)


def test_the_same_seed_gives_the_same_run_but_for_the_speed() -> None:
    def lines(seed: str) -> list[str]:
        return [line for line in printed("--seed", seed).splitlines() if not line.startswith("decisions")]

    assert lines("5") == lines("5")
    assert lines("5")[1:] != lines("6")[1:]


def test_many_nodes_share_rows_and_no_line_is_wider_than_a_terminal() -> None:
    lines = printed("--nodes", "1000", "--pods", "300").splitlines()
    assert max(len(line) for line in lines) <= 80
    assert sum(line.startswith("node-") for line in lines) == 20


def test_json_adds_up() -> None:
    result = json.loads(printed("--nodes", "4", "--pods", "50", "-o", "json"))
    assert sum(result["pods"].values()) == 50
    assert sum(node["pods"] for node in result["nodes"]) == result["pods"]["bound"]
    assert sum(reason["pods"] for reason in result["pendingReasons"]) == result["pods"]["pending"]
    for node in result["nodes"]:
        assert node["cpu"] <= node["cpu_allocatable"]
        assert node["memory"] <= node["memory_allocatable"]


def test_no_pods_at_all() -> None:
    assert "0 bound, 0 pending, 0 preempted" in printed("--pods", "0")


@pytest.mark.parametrize(
    "arguments",
    [["--nodes", "0"], ["--pods", "-1"], ["--nodes", "x"], ["-o", "yaml"], ["--no-such"], ["extra"]],
)
def test_a_bad_value_gets_one_line(arguments: list[str]) -> None:
    done = longshore_demo(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert re.fullmatch(r"error: [^\n]*; see longshore demo --help\n", done.stderr)


def test_a_pipe_gets_plain_text_also_where_there_is_only_ascii() -> None:
    done = longshore_demo("--nodes", "30", encoding="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    assert re.search(r"#+\.* +\d+%", done.stdout)


def test_help_has_an_example() -> None:
    assert "Example: longshore demo --nodes" in printed("--help")
