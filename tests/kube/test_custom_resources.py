"""A kind whose definition may be missing: the start does not wait for it, and the watch begins later."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
from tests.waiting import eventually_async

from longshore.api.meta import Change
from longshore.kube.backoff import JitteredBackoff
from longshore.kube.client import Client
from longshore.kube.custom_resources import CustomMirror
from longshore.kube.errors import ApiError, ConnectionFailed
from longshore.kube.reflector import Reflector
from longshore.kube.resources import SCHEDULE_TRIGGERS

TRIGGER = (
    b"""{"type":"ADDED","object":{"apiVersion":"planner.ciena.io/v1alpha1","kind":"ScheduleTrigger",
"metadata":{"name":"go","namespace":"default","uid":"1","resourceVersion":"5"},"spec":{"state":"Planning"}}}
""".replace(b"\n", b"")
    + b"\n"
)
END_OF_STATE = (
    b"""{"type":"BOOKMARK","object":{"kind":"ScheduleTrigger","metadata":{"resourceVersion":"7",
"annotations":{"k8s.io/initial-events-end":"true"}}}}""".replace(b"\n", b"")
    + b"\n"
)


class Content:
    """The changes that a watch sends before it becomes silent."""

    def __init__(self, *chunks: bytes) -> None:
        self._chunks = list(chunks)

    async def readany(self) -> bytes:
        if not self._chunks:
            await asyncio.Event().wait()
        return self._chunks.pop(0)


class Server:
    """Answers requests and watches by a script. The last answer of each repeats forever."""

    def __init__(self, *, probes: list[int | None], watches: list[int | None]) -> None:
        self._probes = probes
        self._watches = watches
        self.probed = 0

    async def request(self, _method: str, _path: str, **_rest: Any) -> bytes:
        self.probed += 1
        _answer(self._probes)
        return b"{}"

    @asynccontextmanager
    async def stream(self, _path: str, **_rest: Any) -> AsyncIterator[Content]:
        _answer(self._watches)
        yield Content(TRIGGER, END_OF_STATE)


def _answer(script: list[int | None]) -> None:
    """Return the status of the server's answer, 0 if it does not answer, None if there is no error."""
    status = script.pop(0) if len(script) > 1 else script[0]
    if status == 0:
        raise ConnectionFailed("no answer", sent=False)
    if status is not None:
        raise ApiError(status, "", f"answer {status}")


async def moment(_seconds: float) -> None:
    await asyncio.sleep(0)


class Watching:
    def __init__(self, server: Server) -> None:
        self.names: list[str] = []
        self.synced = 0
        client = cast(Client, server)
        reflector = Reflector(
            client,
            SCHEDULE_TRIGGERS,
            self._changed,
            on_synced=self._synced,
            backoff=JitteredBackoff(),
            sleep=moment,
        )
        self.mirror = CustomMirror(client, reflector, sleep=moment)

    def _changed(self, change: Change[Any]) -> None:
        self.names.append(change.object.metadata.name)

    def _synced(self) -> None:
        self.synced += 1

    async def run(self, until: Callable[[], bool]) -> None:
        """Run the mirror until it has come so far."""
        task = asyncio.create_task(self.mirror.run())
        try:
            await eventually_async(until, pause=0.0)
        finally:
            task.cancel()
            await asyncio.wait([task])


@pytest.mark.parametrize("trouble", [[503], [429, 500], [401], [0], [503, 0, 429]])
async def test_a_failing_server_is_asked_again_until_it_says_that_the_kind_is_absent(
    trouble: list[int | None],
) -> None:
    server = Server(probes=[*trouble, 404], watches=[404])
    watching = Watching(server)
    await watching.run(lambda: server.probed > len(trouble) + 5)
    assert watching.mirror.absent
    assert watching.mirror.settled
    assert watching.synced == 1


async def test_the_mirror_is_not_settled_until_the_server_says_whether_the_kind_exists() -> None:
    server = Server(probes=[503], watches=[None])
    watching = Watching(server)
    await watching.run(lambda: server.probed > 5)
    assert not watching.mirror.settled


@pytest.mark.parametrize("trouble", [[404], [403, 404], [503, 403], [503]])
async def test_a_kind_is_mirrored_once_it_exists(trouble: list[int | None]) -> None:
    watching = Watching(Server(probes=[*trouble, None], watches=[None]))
    await watching.run(lambda: bool(watching.names))
    assert watching.names == ["go"]
    assert not watching.mirror.absent
    assert watching.mirror.settled


async def test_a_watch_of_a_kind_that_went_away_waits_for_the_kind() -> None:
    """The servers behind the probe and the watch differ in what they know."""
    watching = Watching(Server(probes=[None, 404], watches=[404]))
    await watching.run(lambda: watching.mirror.absent)
    assert watching.mirror.settled


async def test_a_kind_that_comes_back_is_mirrored_again() -> None:
    watching = Watching(Server(probes=[None, 404, 404, None], watches=[404, None]))
    await watching.run(lambda: bool(watching.names))
    assert watching.names == ["go"]
    assert watching.mirror.settled
