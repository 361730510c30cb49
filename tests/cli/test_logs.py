"""Each line of the log is one JSON object, for any message."""

import json
import subprocess
import sys

import pytest

CODE = """
import structlog
from longshore.cli import logs
logs.configure_level({level!r})
structlog.get_logger().info("told", what={what})
"""


def line(what: str, level: str = "INFO") -> dict[str, object]:
    code = CODE.format(what=what, level=level)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found: dict[str, object] = json.loads(done.stderr) if done.stderr else {}
    return found


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        ("'node-1'", "node-1"),
        ("[1, 2.5, None]", [1, 2.5, None]),
        ("'half \\udcff'", "half \udcff"),
        ("10**40", 10**40),
        ("frozenset()", []),
        ("int", "<class 'int'>"),
    ],
)
def test_any_value_can_be_logged(what: str, expected: object) -> None:
    found = line(what)
    assert (found["event"], found["level"], found["what"]) == ("told", "info", expected)


@pytest.mark.parametrize("level", ["WARNING", "error", "Alert"])
def test_lines_below_the_level_are_dropped(level: str) -> None:
    assert line("1", level) == {}
