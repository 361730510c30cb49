"""Plugins that take too long are ended in time, without harm to other code.

The tests run in real time, which is what the limit is about. Limits are short, and no test has to be quick.
"""

import asyncio
import contextlib
import random
import threading
import time
import types
from collections.abc import Iterator
from typing import Any

import pytest

from longshore.config.registry import register
from longshore.config.setup import enable, set_up
from longshore.engine import Engine, Evict
from longshore.framework import Rejection, Status, filter_plugin
from longshore.framework.effects import Outcome, Until
from longshore.live import time_limit
from longshore.live.time_limit import Stuck, TimeLimit
from longshore.sim import Simulation
from longshore.testing import node, pod

SHORT = 0.02


@pytest.fixture
def limit() -> Iterator[TimeLimit]:
    limit = TimeLimit(SHORT)
    yield limit
    limit.close()


def endless() -> None:
    while True:
        pass


def spin(seconds: float) -> str:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass
    return "done"


class Calls:
    """A plugin with the methods that it is given."""

    name = "Calls"

    def __init__(self, **methods: Any) -> None:
        vars(self).update(methods)


def limited(limit: TimeLimit, **methods: Any) -> Any:
    return limit.limited(Calls(**methods))


def simulated(limit: TimeLimit, *plugins: Any) -> Simulation:
    """Return a simulation of one node with the plugins enabled."""
    registered = [register(plugin) for plugin in plugins]
    configuration = enable(set_up().configuration, registered)
    engine = Engine(configuration, plugins=limit.apply({plugin.name: plugin for plugin in registered}))
    simulation = Simulation(engine)
    simulation.create(node("n1"))
    return simulation


def test_a_quick_plugin_answers_as_without_a_limit(limit: TimeLimit) -> None:
    plugin = limited(limit, permit=lambda *args: args, scope="a scope", weight=7)
    assert plugin.permit(1, 2, 3) == (1, 2, 3)
    assert (plugin.name, plugin.scope, plugin.weight) == ("Calls", "a scope", 7)
    assert not hasattr(plugin, "filter")


def test_an_endless_loop_ends_with_a_timeout(limit: TimeLimit) -> None:
    with pytest.raises(TimeoutError, match=r"took longer than 0.02s"):
        limited(limit, permit=endless).permit()


def test_a_plugin_may_take_its_time_to_the_limit() -> None:
    limit = TimeLimit(60.0)
    assert limited(limit, permit=spin).permit(0.05) == "done"
    limit.close()


def test_an_exception_of_a_plugin_is_passed_on_unchanged(limit: TimeLimit) -> None:
    def raises() -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        limited(limit, permit=raises).permit()


def test_a_plugin_that_catches_every_exception_ends_as_well(limit: TimeLimit) -> None:
    def stubborn() -> None:
        while True:
            with contextlib.suppress(Exception):
                endless()

    with pytest.raises(TimeoutError):
        limited(limit, permit=stubborn).permit()


def test_a_plugin_that_catches_the_exception_gets_it_again(limit: TimeLimit) -> None:
    caught = []

    def more_stubborn() -> None:
        for _ in range(2):
            try:
                endless()
            except BaseException as error:
                caught.append(type(error).__name__)
        endless()

    with pytest.raises(TimeoutError):
        limited(limit, permit=more_stubborn).permit()
    assert caught == ["_TimeIsUp", "_TimeIsUp"]


def test_a_plugin_that_sleeps_in_c_code_is_reported_and_ends_when_it_wakes(limit: TimeLimit) -> None:
    noted: list[Stuck | None] = []
    begin = time.monotonic()
    observer = threading.Timer(0.2, lambda: noted.append(limit.stuck))
    observer.start()

    def sleeps() -> None:
        time.sleep(1.5)
        endless()

    with pytest.raises(TimeoutError):
        limited(limit, permit=sleeps).permit()
    assert time.monotonic() - begin >= 1.5
    [stuck] = noted
    assert stuck is not None
    assert stuck.plugin == "Calls"
    assert begin <= stuck.since <= begin + 0.2
    assert str(stuck).startswith("the plugin Calls has not returned for ")
    assert limit.stuck is None


def test_a_sleep_that_outlasts_the_limit_and_then_returns_is_too_late(limit: TimeLimit) -> None:
    with pytest.raises(TimeoutError):
        limited(limit, permit=lambda: time.sleep(0.2)).permit()


def test_a_plugin_that_is_lost_in_a_library_ends_too(limit: TimeLimit) -> None:
    library = types.ModuleType("some_library")
    exec("def lost():\n    while True: pass\n", vars(library))  # noqa: S102
    with pytest.raises(TimeoutError):
        limited(limit, permit=library.lost).permit()


def test_finalizers_that_run_during_a_call_are_left_alone(limit: TimeLimit) -> None:
    finalizers = types.ModuleType("some_library")
    exec(  # noqa: S102
        "class Trash:\n"
        "    def __init__(self, left): self.left = left\n"
        "    def __del__(self): self.left.pop()\n",
        vars(finalizers),
    )
    left: list[int] = []

    def litters() -> None:
        while True:
            left.append(1)
            finalizers.Trash(left)

    for _ in range(30):
        with pytest.raises(TimeoutError):
            limited(limit, permit=litters).permit()
        assert len(left) <= 1
        left.clear()


def test_a_filter_that_yields_forever_ends(limit: TimeLimit) -> None:
    def yields(*_args: object) -> Iterator[Rejection]:
        while True:
            yield Rejection("never", where=False)

    with pytest.raises(TimeoutError):
        limited(limit, filter=yields).filter(1, 2, 3)


def test_each_step_of_a_generator_has_the_limit() -> None:
    limit = TimeLimit(0.5)

    def steps() -> Iterator[str]:
        yield spin(0.2)
        yield spin(0.2)
        yield spin(0.2)
        endless()

    generator = limited(limit, pre_bind=steps).pre_bind()
    assert [next(generator), next(generator), next(generator)] == ["done"] * 3
    with pytest.raises(TimeoutError):
        next(generator)
    limit.close()


def test_a_generator_gets_what_it_is_sent_and_gives_what_it_returns(limit: TimeLimit) -> None:
    def steps() -> Any:
        try:
            first = yield "a"
            yield first
        except KeyError as error:
            return error.args[0]

    generator = limited(limit, bind=steps).bind()
    assert next(generator) == "a"
    assert generator.send("b") == "b"
    with pytest.raises(StopIteration) as end:
        generator.throw(KeyError("c"))
    assert end.value.value == "c"


def test_the_check_of_a_waiting_generator_has_the_time_limit(limit: TimeLimit) -> None:
    def check() -> Outcome | None:
        endless()
        return None

    def steps() -> Any:
        yield Until(check, 10.0, "timeout")

    [step] = limited(limit, pre_bind=steps).pre_bind()
    with pytest.raises(TimeoutError):
        step.check()


def test_an_async_plugin_may_wait_for_long_but_not_block(limit: TimeLimit) -> None:
    async def waits() -> str:
        await asyncio.sleep(SHORT * 5)
        return "waited"

    async def blocks() -> None:
        await asyncio.sleep(0)
        endless()

    async def both() -> None:
        assert await limited(limit, pre_bind=waits).pre_bind() == "waited"
        with pytest.raises(TimeoutError):
            await limited(limit, pre_bind=blocks).pre_bind()

    asyncio.run(both())


def test_an_async_plugin_can_be_cancelled(limit: TimeLimit) -> None:
    seen = []

    async def waits() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    async def cancel() -> None:
        async def call() -> None:
            await limited(limit, pre_bind=waits).pre_bind()

        task = asyncio.create_task(call())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    assert seen == ["cancelled"]


def test_of_nested_calls_the_inner_one_ends_first_and_the_outer_continues(limit: TimeLimit) -> None:
    inner = limited(limit, permit=endless)
    ended = []

    def calls_another() -> None:
        with pytest.raises(TimeoutError):
            inner.permit()
        ended.append("inner")
        endless()

    with pytest.raises(TimeoutError):
        limited(limit, permit=calls_another).permit()
    assert ended == ["inner"]


class Ours:
    """Code of Longshore that must not be left in the middle."""

    def __init__(self) -> None:
        self.depth = 0
        module = types.ModuleType("longshore.some_part")
        exec(  # noqa: S102
            "def critical(ours, work):\n    ours.depth += 1\n    work()\n    ours.depth -= 1\n", vars(module)
        )
        self.critical = module.critical

    def now(self) -> None:
        self.critical(self, lambda: spin(0.002))


def test_code_of_longshore_that_a_plugin_calls_is_never_left_in_the_middle(limit: TimeLimit) -> None:
    ours = Ours()

    def plugin() -> None:
        while True:
            ours.critical(ours, lambda: sum(range(100)))
            sum(range(100))

    for _ in range(20):
        with pytest.raises(TimeoutError):
            limited(limit, permit=plugin).permit()
        assert ours.depth == 0


def test_a_plugin_that_only_uses_its_handle_ends_there(limit: TimeLimit) -> None:
    class UsesHandle:
        name = "UsesHandle"

        def __init__(self, handle: Any) -> None:
            self.handle = handle

        def permit(self, state: object, pod: object, node: object) -> None:
            while True:
                self.handle.now()

    ours: Any = Ours()
    plugin: Any = limit.apply({"UsesHandle": register(UsesHandle)})["UsesHandle"](None, ours)
    with pytest.raises(TimeoutError):
        plugin.permit(None, None, None)
    assert ours.depth == 0


def test_a_handle_takes_arguments_by_name() -> None:
    limit = TimeLimit(60.0)

    class Rejects:
        name = "Rejects"

        def __init__(self, handle: Any) -> None:
            self.handle = handle

        def permit(self, state: object, pod: object, node: object) -> None:
            self.handle.reject(uid="nobody", plugin=self.name, message="out of luck")

    simulation = simulated(limit, Rejects)
    simulation.create(pod("a"))
    simulation.run(until=0.5)
    limit.close()
    assert simulation.bindings == {"default/a": "n1"}


def test_a_listener_that_takes_too_long_is_reported_with_its_plugin(
    limit: TimeLimit,
) -> None:
    class Listens:
        name = "Listens"

        def __init__(self, handle: Any) -> None:
            handle.on_pod_change(self.hear, self.name)

        def hear(self, old: object, new: object) -> None:
            endless()

        def permit(self, state: object, pod: object, node: object) -> None:
            pass

    simulation = simulated(limit, Listens)
    simulation.create(pod("a"))
    simulation.run(until=10.0)
    assert simulation.bindings == {"default/a": "n1"}
    note = "running PodChange plugin \"Listens\": TimeoutError('took longer than 0.02s')"
    assert note in [event.note for event in simulation.cluster.events]


def test_nothing_is_sent_when_the_call_ends_during_the_inspection(
    limit: TimeLimit, monkeypatch: pytest.MonkeyPatch
) -> None:
    looking, over = threading.Event(), threading.Event()

    def slow_look(_frame: object) -> bool:
        looking.set()
        return over.wait()

    monkeypatch.setattr(time_limit, "_is_of_the_plugin", slow_look)

    def until_looked_at() -> str:
        while not looking.is_set():
            pass
        return "done"

    assert limited(limit, permit=until_looked_at).permit() == "done"
    over.set()
    assert spin(SHORT * 3) == "done"


@pytest.mark.parametrize("before", [True, False])
def test_an_exception_that_comes_when_the_plugin_has_just_returned_is_caught(
    limit: TimeLimit, before: bool
) -> None:
    class Late(list[Any]):
        def pop(self, *_args: Any) -> Any:
            if before:
                raise time_limit._TimeIsUp
            super().pop()
            raise time_limit._TimeIsUp

    limit._calls = Late()
    with pytest.raises(TimeoutError):
        limited(limit, permit=lambda: "done").permit()
    assert limit._calls == []


def test_an_exception_that_has_not_come_when_the_call_ends_is_taken_back(
    limit: TimeLimit, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = []
    monkeypatch.setattr(time_limit, "_send", lambda thread, exception: sent.append((thread, exception)))

    def told_at_the_last_moment() -> str:
        limit._calls[-1].told = time.monotonic()
        return "done"

    assert limited(limit, permit=told_at_the_last_moment).permit() == "done"
    [(thread, exception)] = sent
    assert thread == threading.get_ident()
    assert not exception


def test_no_exception_hits_other_code_when_calls_end_near_the_limit() -> None:
    """Thousands of chances for the exception to come just too late."""
    limit = TimeLimit(0.001)
    plugin = limited(limit, permit=spin)
    chance = random.Random(4)
    outcomes = {"done": 0, "late": 0}
    end = time.monotonic() + 3.0
    try:
        while time.monotonic() < end:
            try:
                outcomes[plugin.permit(chance.uniform(0.0006, 0.0014))] += 1
            except TimeoutError:
                outcomes["late"] += 1
            assert limit.stuck is None
            sum(range(50))
    finally:
        limit.close()
    assert min(outcomes.values()) > 20


def test_a_call_costs_little(limit: TimeLimit) -> None:
    """About 1 µs; far less than the 2 µs asked for is left to chance on a busy machine."""
    plugin = limited(limit, filter_node=lambda *_args: None)
    times = []
    for _ in range(20):
        begin = time.thread_time()
        for _ in range(1000):
            plugin.filter_node(None, None, None)
        times.append((time.thread_time() - begin) / 1000)
    assert min(times) < 2e-6


class SlowForSome:
    """A filter that never ends for pods with the label."""

    name = "SlowForSome"

    def filter_node(self, state: object, pod: Any, node: object) -> Status | None:
        if "slow" in pod.labels:
            endless()
        return None


def test_a_slow_plugin_fails_only_its_pod_under_its_own_name(limit: TimeLimit) -> None:
    simulation = simulated(limit, SlowForSome)
    simulation.create(pod("a").labels(slow="yes"), pod("b"))
    simulation.run(until=0.5)
    assert simulation.bindings == {"default/b": "n1"}
    message = "running \"SlowForSome\" filter plugin: TimeoutError('took longer than 0.02s')"
    [condition] = simulation.cluster.pods["default/a"].status.conditions
    assert (condition.reason, condition.message) == ("SchedulerError", message)
    assert message in [event.note for event in simulation.cluster.events]


def test_a_slow_function_is_ended_like_a_slow_class(limit: TimeLimit) -> None:
    @filter_plugin
    def slow_function(pod: object, node: object) -> None:
        endless()

    simulation = simulated(limit, slow_function)
    simulation.create(pod("a"))
    simulation.run(until=0.5)
    [condition] = simulation.cluster.pods["default/a"].status.conditions
    assert condition.message.startswith('running "SlowFunction" filter plugin: TimeoutError')


def test_a_wait_for_the_cluster_that_never_ends_fails_its_pod(limit: TimeLimit) -> None:
    class SlowCheck:
        name = "SlowCheck"

        def pre_bind(self, state: object, pod: object, node: object) -> Any:
            def check() -> Outcome | None:
                endless()
                return None

            outcome = yield Until(check, 10.0, "timeout")
            return Status.error(getattr(outcome, "message", ""))

    simulation = simulated(limit, SlowCheck)
    simulation.create(pod("a"))
    simulation.run(until=0.5)
    [condition] = simulation.cluster.pods["default/a"].status.conditions
    assert condition.message == "running PreBind plugin \"SlowCheck\": TimeoutError('took longer than 0.02s')"


def test_preemption_continues_when_a_filter_is_slow_on_imagined_nodes(limit: TimeLimit) -> None:
    """A default plugin without a limit calls the filter there."""

    class SlowWhenFull:
        name = "SlowWhenFull"

        def filter_node(self, state: object, pod: Any, node: Any) -> str | None:
            if pod.labels and not node.pods:
                endless()
            return "node(s) were full" if pod.labels and node.pods else None

    simulation = simulated(limit, SlowWhenFull)
    simulation.create(pod("low").on("n1"), pod("high").labels(a="b").priority(5))
    simulation.run(until=0.5)
    assert not any(isinstance(event, Evict) for event in simulation.cluster.events)
    [condition] = simulation.cluster.pods["default/high"].status.conditions
    assert "SlowWhenFull" in condition.message
