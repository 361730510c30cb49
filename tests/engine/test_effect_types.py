"""Code that waits for an effect that is never answered does not type-check."""

from pathlib import Path

import pytest

PROGRAM = """\
from longshore.framework.controllers import Errand
from longshore.framework.effects import GetObject, Pause, RecordEvent, Together
from longshore.api import PersistentVolume

read = GetObject(PersistentVolume, "", "a")
event = RecordEvent("default", "a", "uid", "Normal", "Reason", "Action", "note")

def errand() -> Errand:
    {step}
"""


def problems(step: str, folder: Path) -> str:
    api = pytest.importorskip("mypy.api")
    program = folder / "errand.py"
    program.write_text(PROGRAM.format(step=step))
    found, broken, _ = api.run(["--config-file=pyproject.toml", "--no-error-summary", str(program)])
    assert not broken
    return str(found)


def test_an_errand_may_wait_for_an_operation(tmp_path: Path) -> None:
    assert problems("yield Together((read, Pause(), Together(())))", tmp_path) == ""


@pytest.mark.parametrize("step", ["yield event", "yield Together((read, event))"])
def test_an_errand_may_not_wait_for_an_event(step: str, tmp_path: Path) -> None:
    assert "incompatible type" in problems(step, tmp_path).lower()
