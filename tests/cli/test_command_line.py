"""The command line as a whole: quick help, examples, and one clear line for each error."""

import resource
import subprocess
import sys

import click
import pytest

from longshore.cli import _COMMANDS, _longshore


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "longshore", *arguments], capture_output=True, text=True, check=False
    )


def commands(group: click.Group, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found = []
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        found.append((*path, name))
        if isinstance(command, click.Group):
            found += commands(command, (*path, name))
    return found


@pytest.mark.parametrize("path", commands(_longshore), ids=" ".join)
def test_every_command_explains_itself_with_an_example(path: tuple[str, ...]) -> None:
    done = run(*path, "--help")
    assert done.returncode == 0
    assert "Example: " in done.stdout
    assert f"longshore {path[0]}" in done.stdout


def test_summaries_of_the_overview_are_those_of_the_commands() -> None:
    for name, summary in _COMMANDS.items():
        command = _longshore.get_command(click.Context(_longshore), name)
        assert command is not None
        assert (command.help or "").startswith(summary.rstrip("."))


def test_help_is_quick() -> None:
    """The fastest of several runs counts. Loading numpy alone would take more processor time."""
    times = []
    for _ in range(7):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert run("--help").returncode == 0
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(times) < 0.15


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("sail",), "No such command 'sail'"),
        (("demo", "--nodes", "many"), "'many' is not a valid integer"),
        (("demo", "--wind"), "No such option"),
        (("run", "--tie-break", "coin"), "'coin' is not one of"),
    ],
)
def test_wrong_arguments_are_one_line_and_exit_code_2(arguments: tuple[str, ...], words: str) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert words in done.stderr
    assert "--help" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_closed_output_pipe_is_not_an_error() -> None:
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m longshore demo | head -1"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
