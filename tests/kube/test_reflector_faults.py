"""Whatever happens between the API server and the reflector, in the end the store equals a new list.

The API server is a real one. Faults are caused by a proxy in front of it, or by killing the server.
"""

import asyncio
import random
from collections.abc import Callable

import pytest
from tests.kube.churn import churn, mirrored, writing
from tests.kube.proxy import (
    AnswerLate,
    Asked,
    DropBefore,
    End,
    Fault,
    LoseAnswer,
    Proxy,
    Refuse,
    Reset,
    Script,
    Stall,
)

from longshore.dev import ControlPlane
from longshore.dev.fixtures import OwnCluster, Repetitions
from longshore.kube.backoff import JitteredBackoff
from longshore.kube.config import load
from longshore.kube.resources import PODS


def at_random(make: Callable[[Asked, random.Random], Fault | None]) -> Callable[[], Script]:
    def script() -> Script:
        rng = random.Random(1)
        return lambda asked: make(asked, rng)

    return script


SITUATIONS: dict[str, Callable[[], Script]] = {
    "nothing goes wrong": at_random(lambda _asked, _rng: None),
    "reset at random bytes": at_random(lambda _asked, rng: Reset(after_bytes=rng.randrange(200_000))),
    "watch ended cleanly": at_random(
        lambda asked, rng: End(after_seconds=rng.uniform(0.05, 0.4)) if asked.watch else None
    ),
    "watch stalled": at_random(
        lambda asked, rng: Stall(after_bytes=rng.randrange(600_000)) if asked.watch else None
    ),
    "410 now and then": at_random(
        lambda asked, rng: Refuse(410, "Expired") if rng.random() < 0.4 and not asked.initial else End(0.3)
    ),
    "429 storm": at_random(
        lambda _asked, rng: (
            Refuse(429, "TooManyRequests", retry_after=rng.randrange(2)) if rng.random() < 0.6 else End(0.3)
        )
    ),
    "500s": at_random(
        lambda _asked, rng: Refuse(rng.choice((500, 502, 503, 504))) if rng.random() < 0.5 else End(0.3)
    ),
}


@pytest.mark.parametrize("streaming", [True, False], ids=["streaming list", "paged list"])
@pytest.mark.parametrize("situation", SITUATIONS)
async def test_the_store_equals_a_new_list_after_faults(
    situation: str,
    streaming: bool,
    control_plane: ControlPlane,
    namespace: str,
    repetitions: Repetitions,
) -> None:
    direct = load(control_plane.kubeconfig)
    proxy = Proxy(direct, SITUATIONS[situation]())
    async with (
        proxy.running(),
        writing(direct) as writer,
        mirrored(
            proxy.connection,
            namespace,
            streaming=streaming,
            read_timeout=1.0,
            backoff=JitteredBackoff(first=0.02, most=0.5),
        ) as mirror,
    ):
        await asyncio.wait_for(mirror.reflector.synced.wait(), 60)
        await churn(writer, namespace, operations=repetitions(full=10_000, short=800), seed=7)
        await mirror.equals_a_fresh_list(direct, namespace, within=60)
    assert mirror.changes > 100
    assert proxy.faults > 0 or situation == "nothing goes wrong"


async def test_the_store_agrees_with_writes_whose_responses_are_late_or_lost(
    control_plane: ControlPlane, namespace: str, repetitions: Repetitions
) -> None:
    """Reads and writes use the proxy, and the results of the writer agree with what the reflector sees."""
    rng = random.Random(9)

    def script(asked: Asked) -> Fault | None:
        if asked.watch:
            return End(rng.uniform(0.1, 0.5))
        if asked.method == "GET":
            return None
        return rng.choice([None, None, None, LoseAnswer(), AnswerLate(0.1), DropBefore()])

    direct = load(control_plane.kubeconfig)
    proxy = Proxy(direct, script)
    backoff = JitteredBackoff(first=0.02, most=0.5)
    async with (
        proxy.running(),
        writing(proxy.connection) as writer,
        mirrored(proxy.connection, namespace, backoff=backoff) as mirror,
    ):
        await asyncio.wait_for(mirror.reflector.synced.wait(), 60)
        await churn(writer, namespace, operations=repetitions(full=10_000, short=800), seed=8)
        await mirror.equals_a_fresh_list(direct, namespace, within=60)
    assert mirror.changes > 100


async def test_a_429_never_causes_another_list(control_plane: ControlPlane, namespace: str) -> None:
    direct = load(control_plane.kubeconfig)
    proxy = Proxy(direct)
    async with (
        proxy.running(),
        writing(direct) as writer,
        mirrored(proxy.connection, namespace, backoff=JitteredBackoff(first=0.02, most=0.1)) as mirror,
    ):
        await asyncio.wait_for(mirror.reflector.synced.wait(), 30)
        refusals = 0

        def storm(asked: Asked) -> Fault | None:
            nonlocal refusals
            refusals += 1
            return Refuse(429, "TooManyRequests", retry_after=0) if refusals <= 20 else End(0.2)

        proxy.script = storm
        await churn(writer, namespace, operations=200, seed=3)
        await mirror.equals_a_fresh_list(direct, namespace, within=30)
    assert mirror.reflector.lists == 1
    assert sum(asked.initial for asked in proxy.asked) == 1


async def test_a_410_causes_another_list_and_reports_deletions(
    control_plane: ControlPlane, namespace: str
) -> None:
    direct = load(control_plane.kubeconfig)
    proxy = Proxy(direct)
    async with (
        proxy.running(),
        writing(direct) as writer,
        mirrored(proxy.connection, namespace, backoff=JitteredBackoff(first=0.02, most=0.1)) as mirror,
    ):
        await asyncio.wait_for(mirror.reflector.synced.wait(), 30)
        await churn(writer, namespace, operations=200, seed=4)
        await mirror.equals_a_fresh_list(direct, namespace, within=30)
        proxy.script = lambda _asked: Refuse(500)
        proxy.cut_all()
        for key in list(mirror.told):
            await writer.delete(PODS, namespace, key.removeprefix(f"{namespace}/"))
        proxy.script = lambda asked: None if asked.initial else Refuse(410, "Expired")
        await mirror.equals_a_fresh_list(direct, namespace, within=30)
    assert mirror.told == {}
    assert mirror.reflector.lists >= 2


async def test_the_store_is_complete_after_the_api_server_was_killed_and_restarted(
    own_cluster: OwnCluster, repetitions: Repetitions
) -> None:
    plane = own_cluster(nodes=0, kwok=False, controller_manager=False)
    direct = load(plane.kubeconfig)
    async with (
        writing(direct) as writer,
        mirrored(
            direct, "default", read_timeout=5.0, backoff=JitteredBackoff(first=0.05, most=0.5)
        ) as mirror,
    ):
        await asyncio.wait_for(mirror.reflector.synced.wait(), 30)
        for round_ in range(repetitions(full=10)):
            operations = repetitions(full=1000, short=300)
            writes = asyncio.create_task(churn(writer, "default", operations=operations, seed=round_))
            await asyncio.sleep(0.5)
            await asyncio.to_thread(plane.api_server.kill)
            await asyncio.to_thread(plane.api_server.restart)
            await writes
            await mirror.equals_a_fresh_list(direct, "default", within=60)
