"""Work that may wait, in virtual time: how much of it runs at a time, and that none of it is lost."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from longshore.kube import backlog
from longshore.kube.backlog import MOST_AT_ONCE, Backlog


class Work:
    """Tasks that end when the test says so, with the test's clock."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.busy = True
        self.begun: list[int] = []
        self.done: list[int] = []
        self._ends: dict[int, asyncio.Event] = {}
        monkeypatch.setattr(backlog, "_now", lambda: self.now)
        self.backlog = Backlog(others_busy=lambda: self.busy)

    def add(self, *numbers: int) -> None:
        for number in numbers:
            self._ends[number] = asyncio.Event()
            self.backlog.add(lambda number=number: self._do(number))  # type: ignore[misc]

    async def _do(self, number: int) -> None:
        self.begun.append(number)
        await self._ends[number].wait()
        self.done.append(number)

    async def end(self, *numbers: int) -> None:
        for number in numbers:
            self._ends[number].set()
        await self.rest()

    async def rest(self) -> None:
        for _ in range(5):
            await asyncio.sleep(0)


@pytest.fixture
async def work(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Work]:
    work = Work(monkeypatch)
    yield work
    work.busy = False
    while len(work.backlog):
        await work.end(*work.begun)


async def test_few_tasks_start_while_others_are_busy(work: Work) -> None:
    work.add(*range(100))
    await work.rest()
    assert work.begun == [0, 1, 2, 3]
    assert len(work.backlog) == 100


async def test_a_task_that_ends_makes_room_for_the_next_in_order(work: Work) -> None:
    work.add(*range(10))
    await work.rest()
    await work.end(2)
    assert work.begun == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(("waited", "at_once"), [(0.5, 4), (2.0, 16), (4.0, MOST_AT_ONCE)])
async def test_the_longer_the_first_task_has_waited_the_more_run_at_a_time(
    work: Work, waited: float, at_once: int
) -> None:
    work.add(*range(100))
    await work.rest()
    work.now = waited
    assert work.backlog.delay == waited
    await work.end(0)
    assert len(work.begun) - len(work.done) == at_once


async def test_the_maximum_runs_at_a_time_if_others_are_idle(work: Work) -> None:
    work.busy = False
    work.add(*range(100))
    await work.rest()
    assert len(work.begun) == MOST_AT_ONCE


async def test_done_waits_for_all_tasks(work: Work) -> None:
    work.add(*range(20))
    waiting = asyncio.create_task(work.backlog.done())
    for number in range(20):
        assert not waiting.done()
        await work.end(number)
    await asyncio.wait_for(waiting, timeout=5)
    assert sorted(work.done) == list(range(20))
    assert (len(work.backlog), work.backlog.delay) == (0, 0.0)
