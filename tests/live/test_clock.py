"""The engine follows the wall clock, also when that is set."""

import time

import pytest

from longshore.engine import Engine
from longshore.live import clock


@pytest.mark.parametrize("moved", [3600.0, -3600.0])
def test_a_clock_that_was_set_is_followed(moved: float, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine(epoch=clock.epoch())
    wall = time.time
    monkeypatch.setattr(time, "time", lambda: wall() + moved)
    clock.follow(engine)
    assert engine.epoch == pytest.approx(clock.epoch(), abs=1.0)


def test_small_corrections_are_no_news(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine(epoch=clock.epoch())
    before, wall = engine.epoch, time.time
    monkeypatch.setattr(time, "time", lambda: wall() + 0.01)
    clock.follow(engine)
    assert engine.epoch == before
