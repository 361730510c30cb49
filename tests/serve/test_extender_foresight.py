"""Work of an extender after it has sent an answer: it reports the answer and prepares the next one."""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs
from tests.serve.extendernodes import CALM, FILTER, FULL, PRIORITIES, WEB, with_free
from tests.serve.extenders import Made, about_names, by_host, make

from longshore.serve.extender import wire
from longshore.testing import pod

QUIET = with_free("quiet", 3900, 100)


class Waiting:
    """An extender whose later work runs when the test calls for it."""

    def __init__(self, made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made = made
        self._later: list[Callable[[], None]] = []
        monkeypatch.setattr(made.extender, "_later", self._later.append)
        # How often priorities were encoded.
        self.composed = 0
        compose = wire.priorities

        def counted(elements: Iterable[bytes]) -> bytes:
            self.composed += 1
            return compose(elements)

        monkeypatch.setattr(wire, "priorities", counted)

    def work(self) -> None:
        while self._later:
            self._later.pop(0)()

    def priorities(self, *names: str) -> dict[str, int]:
        return by_host(self._ask(PRIORITIES, names))

    def passed(self, *names: str) -> list[str]:
        left: list[str] = self._ask(FILTER, names)["NodeNames"]
        return left

    def _ask(self, verb: str, names: tuple[str, ...]) -> Any:
        # Without spaces, as Go encodes it.
        return self.made.post(verb, msgspec.json.encode(about_names(WEB, list(names))))[1]


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> Waiting:
    made = make("safe")
    made.put(CALM, QUIET, FULL)
    found = Waiting(made, monkeypatch)
    # An entry with both verbs, which was asked for priorities before.
    found.priorities("calm")
    found.work()
    return found


def test_priorities_are_ready_when_they_are_asked_for(waiting: Waiting) -> None:
    expected = waiting.priorities("calm", "quiet")
    left = waiting.passed("calm", "full", "quiet")
    waiting.work()
    composed = waiting.composed
    assert waiting.priorities(*left) == expected
    assert waiting.composed == composed


def test_a_pod_created_meanwhile_counts(waiting: Waiting) -> None:
    before = waiting.priorities("calm", "quiet")
    waiting.passed("calm", "quiet")
    waiting.work()
    waiting.made.engine.cluster.measures.put({"cpu/mean": {"quiet": (2200.0, 0.0)}}, now=0.0)
    waiting.made.put(pod("other").requests(cpu="1").on("quiet"))
    after = waiting.priorities("calm", "quiet")
    assert after["calm"] == before["calm"]
    assert after["quiet"] < before["quiet"]


def test_priorities_of_another_pod_are_its_own(waiting: Waiting) -> None:
    waiting.passed("calm", "quiet")
    waiting.work()
    large = pod("large").requests(cpu="1500m")
    found = by_host(waiting.made.post(PRIORITIES, about_names(large, ["calm", "quiet"]))[1])
    assert found["calm"] < waiting.priorities("calm", "quiet")["calm"]


def test_an_entry_that_only_filters_is_not_prepared_for(monkeypatch: pytest.MonkeyPatch) -> None:
    made = make("safe")
    made.put(CALM)
    waiting = Waiting(made, monkeypatch)
    waiting.passed("calm")
    waiting.work()
    assert waiting.composed == 0


def test_metrics_and_logs_are_written_after_the_answer(waiting: Waiting) -> None:
    with capture_logs() as told:
        waiting.passed("calm")
        assert told == []
        waiting.work()
    assert [line["event"] for line in told] == ["asked", "answered"]
