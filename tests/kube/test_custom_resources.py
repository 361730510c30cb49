"""A kind that may be absent: the scheduler does not wait for it, and mirrors it once it is installed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, cast

import pytest

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
    """What a watch sends, and then nothing more."""

    def __init__(self, *chunks: bytes) -> None:
        self._chunks = list(chunks)

    async def readany(self) -> bytes:
        if not self._chunks:
            await asyncio.Event().wait()
        return self._chunks.pop(0)


class Server:
    """Answers requests and watches by a script; the last answer of each counts for ever."""

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
    """A status that the server answers with, 0 if it does not answer, None if all is well."""
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

    async def run(self) -> None:
        """Run for as long as there is something to do."""
        with suppress(TimeoutError):
            async with asyncio.timeout(0.05):
                await self.mirror.run()


@pytest.mark.parametrize("trouble", [[503], [429, 500], [401], [0], [503, 0, 429]])
async def test_a_failing_server_is_asked_again_until_it_says_that_the_kind_is_absent(
    trouble: list[int | None],
) -> None:
    server = Server(probes=[*trouble, 404], watches=[404])
    watching = Watching(server)
    await watching.run()
    assert watching.mirror.absent
    assert watching.mirror.settled
    assert server.probed > len(trouble)
    assert watching.synced == 1


async def test_the_mirror_is_not_settled_before_it_is_known_whether_the_kind_exists() -> None:
    watching = Watching(Server(probes=[503], watches=[None]))
    await watching.run()
    assert not watching.mirror.settled


@pytest.mark.parametrize("trouble", [[404], [403, 404], [503, 403], [503]])
async def test_a_kind_is_mirrored_once_it_is_installed(trouble: list[int | None]) -> None:
    watching = Watching(Server(probes=[*trouble, None], watches=[None]))
    await watching.run()
    assert watching.names == ["go"]
    assert not watching.mirror.absent
    assert watching.mirror.settled


async def test_a_watch_of_a_kind_that_went_away_waits_for_the_kind() -> None:
    """The probe was answered by a server that knew more than the one behind the watch, or less later."""
    watching = Watching(Server(probes=[None, 404], watches=[404]))
    await watching.run()
    assert watching.mirror.absent
    assert watching.mirror.settled


async def test_a_kind_that_comes_back_is_mirrored_again() -> None:
    watching = Watching(Server(probes=[None, 404, 404, None], watches=[404, None]))
    await watching.run()
    assert watching.names == ["go"]
    assert watching.mirror.settled
