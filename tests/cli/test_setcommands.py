"""The commands about pod sets before any request, and their output."""

import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest

from longshore.cli.bars import Bars
from longshore.cli.trigger_text import fires_at

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "longshore", *arguments], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("trigger",), "give NAME, or --list"),
        (("trigger", "go", "--list"), "--list cannot be combined with NAME, --state or --watch"),
        (
            ("trigger", "--list", "--state", "Planning"),
            "--list cannot be combined with NAME, --state or --watch",
        ),
        (("trigger", "--list", "--watch"), "--list cannot be combined with NAME, --state or --watch"),
        (("trigger", "--list", "-A", "-n", "shop"), "-n and -A cannot be combined"),
        (("trigger", "go", "-A"), "-A requires --list"),
        (("trigger", "go", "--state", "Go"), "'Go' is not one of"),
        (("trigger", "go", "--watch", "--state", "Planning"), "--watch requires --state Schedule"),
        (("trigger", "go", "--timeout", "9s"), "--timeout requires --watch"),
        (("trigger", "go", "--watch", "--timeout", "soon"), "'soon' is not a duration above 0"),
        (("trigger", "shop/go", "-n", "bar"), "shop/go and -n bar name different namespaces"),
        (("plan",), "Missing argument 'SET'"),
        (("plan", "batch", "--budget", "2s"), "require --preview"),
        (("plan", "batch", "--objective", "Pack"), "require --preview"),
        (("plan", "batch", "--config", "scheduler.yaml"), "require --preview"),
        (("plan", "batch", "--plugin", "mine.py"), "require --preview"),
        (("plan", "batch", "--preview", "--budget", "-2s"), "'-2s' is not a duration above 0"),
        (("plan", "batch", "--preview", "--objective", "Fast"), "'Fast' is not one of"),
        (("plan", "shop/batch", "-n", "bar"), "shop/batch and -n bar name different namespaces"),
        (("verify", "-A", "-n", "shop"), "-n and -A cannot be combined"),
        (("verify", "batch"), "unexpected extra argument"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_arguments_that_are_wrong_are_one_line(arguments: tuple[str, ...], words: str) -> None:
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert f"longshore {arguments[0]} --help" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [("trigger", "go"), ("trigger", "--list"), ("plan", "a"), ("plan", "a", "--preview"), ("verify",)],
)
def test_a_kubeconfig_that_is_not_there_is_one_line(arguments: tuple[str, ...]) -> None:
    done = run(*arguments, "--kubeconfig", "/no/such/file")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: cannot read the kubeconfig /no/such/file")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, ""),
        ("2026-01-01T00:01:30Z", "2026-01-01T00:01:30Z (in 1m30s)"),
        ("2025-12-31T23:59:00Z", "2025-12-31T23:59:00Z"),
        ("tomorrow", "tomorrow"),
        ("2026-01-01T00:01:30", "2026-01-01T00:01:30"),
    ],
)
def test_when_a_trigger_fires(text: str | None, expected: str) -> None:
    assert fires_at(text, NOW) == expected


def test_when_a_trigger_fires_in_another_zone() -> None:
    then = (NOW + timedelta(hours=1)).isoformat()
    assert fires_at(then, NOW) == f"{then} (in 1h0m0s)"


def test_the_added_load_is_drawn_differently() -> None:
    assert Bars("utf-8").becoming(1000, 2000, 4000).plain == "████▓▓▓▓▓░░░░░░░░░  25% → 50%"
    assert Bars("ascii").becoming(1000, 2000, 4000).plain == "####+++++.........  25% -> 50%"


def test_a_value_that_never_changes_has_one_share() -> None:
    assert Bars("utf-8").becoming(1000, 1000, 4000).plain == "████░░░░░░░░░░░░░░  25%"


def test_a_bar_is_no_longer_than_full() -> None:
    assert Bars("utf-8").becoming(0, 9000, 4000).plain == "▓" * 18 + "   0% → 225%"
    assert Bars("utf-8").becoming(1, 1, 0).plain == "░" * 18 + "   0%"
