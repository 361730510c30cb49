"""The demo: its output in a terminal and into a pipe."""

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


def test_the_nodes_before_and_after_the_trigger_and_the_story_between() -> None:
    text = printed("--nodes", "3", "--pods", "60")
    rows = re.findall(r"^node-\d+ +\d+(?: → \d+)? +█+▓*░* +\d+%(?: → \d+%)? *$", text, re.MULTILINE)
    assert len(rows) == 3
    assert any("▓" in row for row in rows)
    story = " ".join(text.split())
    assert (
        "20 pods of the set batch wait: pod set batch is held by its trigger go until the quiet time of 2m0s"
        in story
    )
    held = re.search(r"(\d+\.\d) s +the last pod of the set is created", text)
    fired = re.search(r"(\d+\.\d) s +2m0s later the trigger fires", text)
    assert held is not None
    assert fired is not None
    assert 119 <= float(fired[1]) - float(held[1]) <= 120
    assert re.search(r"a plan for \d+ pods is stored.*\d+ pods bound.*all as planned", story)
    assert "the pods of the set are deleted, and so is the plan" in story


def test_all_pods_are_accounted_for_and_those_without_a_node_know_why() -> None:
    text = printed("--nodes", "3", "--pods", "60")
    counts = re.search(r"pods +(\d+) bound, (\d+) pending, (\d+) preempted", text)
    assert counts is not None
    assert sum(map(int, counts.groups())) == 60
    assert re.search(r"pods: 0/3 nodes are available: .*Insufficient cpu", text)
    assert re.search(r"decisions +[\d,]+, [\d,]+ a second", text)


def test_the_same_seed_gives_the_same_run_but_for_the_speed() -> None:
    def lines(seed: str) -> list[str]:
        every = printed("--seed", seed).splitlines()
        return [line.rstrip() for line in every if not line.startswith("decisions")]

    assert lines("5") == lines("5")
    assert lines("5")[1:] != lines("6")[1:]


def test_many_nodes_share_rows_and_no_line_is_wider_than_a_terminal() -> None:
    lines = printed("--nodes", "1000", "--pods", "300").splitlines()
    assert max(len(line) for line in lines) <= 80
    assert sum(line.startswith("node-") for line in lines) == 20


def test_numbers_in_the_json_output_add_up() -> None:
    result = json.loads(printed("--nodes", "4", "--pods", "50", "-o", "json"))
    assert sum(result["pods"].values()) == 50
    assert sum(node["pods"] for node in result["after"]) == result["pods"]["bound"]
    assert sum(reason["pods"] for reason in result["pendingReasons"]) == result["pods"]["pending"]
    for node in (*result["before"], *result["after"]):
        assert node["cpu"] <= node["cpu_allocatable"]
        assert node["memory"] <= node["memory_allocatable"]


def test_the_json_output_contains_the_set() -> None:
    result = json.loads(printed("--nodes", "4", "--pods", "50", "-o", "json"))
    podset = result["set"]
    assert podset["held"] == 17
    assert podset["planned"] == podset["bound"] == podset["asPlanned"]
    assert podset["planned"] + podset["leftOut"] == 17
    before, after = (sum(node["pods"] for node in result[when]) for when in ("before", "after"))
    # Nothing else happens in between.
    assert after - before == podset["bound"]
    assert podset["planGone"] is True


def test_a_demo_without_pods() -> None:
    text = printed("--pods", "0")
    assert "0 bound, 0 pending, 0 preempted" in text
    assert "the set batch has no pods" in text


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
    assert re.search(r"#+\+*\.* +\d+%", done.stdout)


def test_help_has_an_example() -> None:
    assert "Example: longshore demo --nodes" in printed("--help")
