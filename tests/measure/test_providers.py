"""The loop that reads a provider: which measurements it passes on and when, and its log. Time is virtual."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pytest
from structlog.testing import capture_logs

from longshore.api import Node
from longshore.cluster import ClusterState
from longshore.config import EnabledPlugin, MeasurementSettings, default_configuration
from longshore.config.registry import Registered
from longshore.engine import Measurements
from longshore.framework import Plugin
from longshore.measure import providers as module
from longshore.measure.providers import Measuring, ProviderFailed, Values, make_provider, settings_for
from longshore.testing import node

SETTINGS = MeasurementSettings(provider="prometheus", address="http://127.0.0.1:9", max_age=60.0, settle=7.0)
GOOD: Values = {"cpu/mean": {"a": (100.0, 990.0), "b": (200.0, 990.0)}}
NOW = 1000.0


class Script:
    """A provider that answers or fails by a script. The last line repeats forever."""

    def __init__(self, *lines: Values | Exception) -> None:
        self._lines = list(lines)
        self.asked: list[list[str]] = []
        self.closed = False

    async def measure(self, nodes: Sequence[Node]) -> Values:
        self.asked.append([node.metadata.name for node in nodes])
        line = self._lines.pop(0) if len(self._lines) > 1 else self._lines[0]
        if isinstance(line, Exception):
            raise line
        return line

    async def close(self) -> None:
        self.closed = True


def cluster_of(*names: str) -> ClusterState:
    cluster = ClusterState()
    for name in names:
        cluster.add_node(node(name))
    return cluster


async def rounds(number: int, *lines: Values | Exception, nodes: Iterable[str] = ("a", "b")) -> list[Any]:
    """Return the measurements of each round, and the lines of the log."""
    loop = Measuring(SETTINGS, Script(*lines), cluster_of(*nodes), lambda _event: None, wall=lambda: NOW)
    with capture_logs() as told:
        found = [await loop.measure() for _ in range(number)]
    return [*found, *((line["log_level"], line["event"], line.get("reason", "")) for line in told)]


async def test_values_of_the_provider_are_passed_on() -> None:
    assert await rounds(1, GOOD) == [GOOD]


async def test_a_failing_provider_is_logged_once_and_once_when_it_recovers() -> None:
    bad = ProviderFailed("nobody listens")
    assert await rounds(5, bad, ProviderFailed("timed out"), bad, GOOD, GOOD) == [
        {},
        {},
        {},
        GOOD,
        GOOD,
        ("warning", "no measurements", "nobody listens"),
        ("info", "measurements are back", ""),
    ]


async def test_a_provider_that_breaks_does_not_end_the_loop() -> None:
    assert await rounds(2, ZeroDivisionError("division by zero"), GOOD) == [
        {},
        GOOD,
        ("warning", "no measurements", "ZeroDivisionError: division by zero"),
        ("info", "measurements are back", ""),
    ]


async def test_an_answer_without_known_nodes_is_a_failure() -> None:
    nothing: Values = {"cpu/mean": {}}
    assert await rounds(1, nothing) == [
        nothing,
        ("warning", "no measurements", "no values for any node"),
    ]


async def test_a_provider_that_does_not_answer_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    class Silent(Script):
        async def measure(self, nodes: Sequence[Node]) -> Values:
            await asyncio.Event().wait()
            return GOOD

    monkeypatch.setattr(module, "TIMEOUT", 0.01)
    loop = Measuring(SETTINGS, Silent(GOOD), cluster_of("a"), lambda _event: None)
    assert await loop.measure() == {}
    assert loop.problem == "no answer within 0.01s"


async def test_nodes_that_are_missing_are_named_once() -> None:
    some: Values = {"cpu/mean": {"a": (100.0, 990.0)}}
    assert await rounds(3, some, some, GOOD) == [
        some,
        some,
        GOOD,
        ("warning", "some nodes have no measurements", ""),
    ]


async def test_values_that_are_all_too_old_are_logged_and_passed_on() -> None:
    old: Values = {"cpu/mean": {"a": (100.0, NOW - 61), "b": (100.0, NOW - 600)}}
    assert await rounds(3, old, old, GOOD) == [
        old,
        old,
        GOOD,
        ("warning", "no measurements", "all values are older than 60s"),
        ("info", "measurements are back", ""),
    ]


async def test_values_from_the_future_are_not_believed() -> None:
    """The source may use milliseconds, or its clock may be hours ahead."""
    values: Values = {"cpu/mean": {"a": (100.0, NOW * 1000), "b": (200.0, NOW + 5)}}
    (found, *_) = await rounds(1, values)
    assert found == {"cpu/mean": {"b": (200.0, NOW + 5)}}


async def test_the_provider_is_not_asked_about_a_cluster_without_nodes() -> None:
    assert await rounds(1, GOOD, nodes=()) == [{}]


def test_maximum_age_and_settling_reach_the_measures() -> None:
    cluster = cluster_of("a")
    Measuring(SETTINGS, Script(GOOD), cluster, lambda _event: None)
    assert (cluster.measures.max_age, cluster.measures.settle) == (60.0, 7.0)


async def test_without_a_provider_nodes_speak_for_themselves() -> None:
    cluster = ClusterState()
    settings = MeasurementSettings()
    provider = make_provider(settings, client=None)  # type: ignore[arg-type]
    assert provider is None
    told = asyncio.Event()
    task = asyncio.create_task(Measuring(settings, provider, cluster, lambda _event: told.set()).run())
    await told.wait()
    task.cancel()
    cluster.add_node(node("a").allocatable(cpu="4").annotations(**{"mean-free-cpu": "3000"}))
    assert cluster.measures.value("cpu/mean", cluster.all_nodes()).tolist() == [1000.0]


async def test_every_round_is_passed_on_even_an_empty_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[Mapping[str, object]] = []
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 40:
            raise asyncio.CancelledError

    monkeypatch.setattr("longshore.measure.providers.asyncio.sleep", sleep)
    provider = Script(GOOD, ProviderFailed("gone"))

    def tell(event: Measurements) -> None:
        told.append(event.values)

    with pytest.raises(asyncio.CancelledError):
        await Measuring(SETTINGS, provider, cluster_of("a", "b"), tell, wall=lambda: NOW).run()
    assert told == [GOOD, *[{}] * 39]
    # The first round may run while nodes are still being listed.
    assert slept[0] <= 1.0
    assert all(27.0 <= seconds <= 30.0 for seconds in slept[1:])
    assert len(set(slept)) == 40
    assert provider.closed


async def test_nodes_that_become_known_are_asked_about_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = cluster_of()
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 2:
            cluster.add_node(node("a"))
        if len(slept) == 5:
            raise asyncio.CancelledError

    monkeypatch.setattr("longshore.measure.providers.asyncio.sleep", sleep)
    provider = Script(GOOD)
    with pytest.raises(asyncio.CancelledError):
        await Measuring(SETTINGS, provider, cluster, lambda _event: None, wall=lambda: NOW).run()
    assert provider.asked == [["a"]] * 3
    assert [seconds < 2 for seconds in slept] == [True, True, True, False, False]


def _registered(thing: object) -> Registered:
    return Registered("Mine", {"score"}, 1, "here", "here:1", thing)


class Agent:
    verb = "mine"


class Other:
    pass


@pytest.mark.parametrize(
    ("thing", "enabled", "wanted"),
    [(Agent, True, MeasurementSettings()), (Agent, False, None), (Other, True, None)],
    ids=["an agent", "an agent that is not enabled", "another plugin"],
)
def test_measurements_are_wanted_if_an_agent_is_enabled(
    thing: Callable[[], Plugin], enabled: bool, wanted: MeasurementSettings | None
) -> None:
    from msgspec.structs import replace

    configuration = default_configuration()
    (profile,) = configuration.profiles
    if enabled:
        score = (*profile.points["score"], EnabledPlugin("Mine", 1))
        profile = replace(profile, points={**profile.points, "score": score})
    configuration = replace(configuration, profiles=(profile,))
    assert settings_for(configuration, {"Mine": _registered(thing)}) == wanted


def test_measurements_that_are_configured_are_wanted_without_any_agent() -> None:
    from msgspec.structs import replace

    configuration = default_configuration()
    configured = replace(configuration, longshore=replace(configuration.longshore, measurements=SETTINGS))
    assert settings_for(configured, {}) == SETTINGS
