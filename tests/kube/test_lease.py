"""The elector and its thread, with a lease in memory."""

import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from longshore.errors import UserError
from longshore.kube.errors import ApiError, ConnectionFailed
from longshore.kube.lease import LeaderElector


class LeaseInMemory:
    """The only resource of an API server that an elector uses."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.failure: Exception | None = None
        # Called with the method after a request was carried out. If it raises, the response is lost.
        self.after: Callable[[str], None] = lambda _method: None
        self._lock = threading.Lock()
        self.version = 0

    @asynccontextmanager
    async def connect(self) -> AsyncIterator["LeaseInMemory"]:
        yield self

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        timeout: float | None = None,
    ) -> bytes:
        if self.failure is not None:
            raise self.failure
        with self._lock:
            answer = self._carry_out(method, body)
        self.after(method)
        return answer

    def _carry_out(self, method: str, body: bytes | None) -> bytes:
        if method == "GET":
            if self.lease is None:
                raise ApiError(404, "NotFound", "no such lease")
            return msgspec.json.encode(self.lease)
        lease = msgspec.json.decode(body or b"")
        current = self.lease["metadata"]["resourceVersion"] if self.lease else None
        if lease["metadata"].get("resourceVersion") != current:
            raise ApiError(409, "Conflict", "someone else was first")
        self.version += 1
        lease["metadata"]["resourceVersion"] = str(self.version)
        self.lease = lease
        return msgspec.json.encode(lease)

    @property
    def spec(self) -> dict[str, Any]:
        assert self.lease is not None
        spec: dict[str, Any] = self.lease["spec"]
        return spec


class Member:
    """An elector with short times, and the events that it reported."""

    def __init__(self, server: LeaseInMemory, identity: str, **timing: float) -> None:
        self.started = threading.Event()
        self.stopped = threading.Event()
        self.on_stopped: Callable[[], None] = self.stopped.set
        self.elector = LeaderElector(
            server.connect,
            namespace="kube-system",
            name="longshore",
            identity=identity,
            **({"lease_duration": 3.0, "renew_deadline": 2.0, "retry_period": 0.05} | timing),
            on_started_leading=self.started.set,
            on_stopped_leading=self._stop,
        )

    def _stop(self) -> None:
        self.on_stopped()


class TestLeaderElector:
    @pytest.fixture
    def server(self) -> LeaseInMemory:
        return LeaseInMemory()

    def test_a_member_leads_renews_and_releases(self, server: LeaseInMemory) -> None:
        member = Member(server, "me")
        renewed_twice = threading.Event()
        server.after = lambda _method: renewed_twice.set() if server.version >= 3 else None
        assert not member.elector.holds_lease()
        member.elector.start()
        assert member.started.wait(5)
        assert member.elector.holds_lease()
        assert renewed_twice.wait(5)
        assert server.spec["holderIdentity"] == "me"
        assert server.spec["leaseDurationSeconds"] == 3
        assert server.spec["acquireTime"] < server.spec["renewTime"]
        member.elector.stop()
        assert not member.elector.holds_lease()
        assert (server.spec["holderIdentity"], server.spec["leaseDurationSeconds"]) == ("", 1)
        assert not member.stopped.is_set()

    def test_metadata_set_by_others_is_kept(self, server: LeaseInMemory) -> None:
        metadata = {"name": "longshore", "resourceVersion": "0", "labels": {"team": "harbour"}}
        server.lease = {"metadata": metadata, "spec": {}}
        member = Member(server, "me")
        member.elector.start()
        assert member.started.wait(5)
        member.elector.stop()
        assert server.lease["metadata"]["labels"] == {"team": "harbour"}

    def test_a_second_member_leads_after_the_first_has_stopped(self, server: LeaseInMemory) -> None:
        first, second = Member(server, "first"), Member(server, "second")
        first.elector.start()
        assert first.started.wait(5)
        second.elector.start()
        assert not second.started.wait(0.3)
        first.elector.stop()
        assert second.started.wait(5)
        assert server.spec["leaseTransitions"] == 1
        second.elector.stop()

    @pytest.mark.parametrize(
        "failure",
        [
            ConnectionFailed("reset", sent=True),
            ConnectionFailed("refused", sent=False),
            ApiError(500, "InternalError", "etcd is away"),
            ApiError(401, "Unauthorized", "who are you"),
            TimeoutError(),
            UserError("the exec plugin failed"),
        ],
        ids=lambda failure: type(failure).__name__,
    )
    def test_a_lasting_failure_ends_the_leadership_at_the_deadline(
        self, server: LeaseInMemory, failure: Exception
    ) -> None:
        member = Member(server, "me", renew_deadline=0.5)
        member.elector.start()
        assert member.started.wait(5)
        server.failure = failure
        begin = time.monotonic()
        assert member.stopped.wait(5)
        assert time.monotonic() - begin < 5.0
        assert not member.elector.holds_lease()
        member.elector.stop()

    def test_lost_responses_do_not_end_the_leadership(self, server: LeaseInMemory) -> None:
        """Each renewal succeeds, but every other response is lost."""
        writes = 0
        enough = threading.Event()

        def lose(method: str) -> None:
            nonlocal writes
            if method == "GET":
                return
            writes += 1
            if writes >= 12:
                enough.set()
            if writes % 2:
                raise ConnectionFailed("reset", sent=True)

        server.after = lose
        member = Member(server, "me")
        member.elector.start()
        assert enough.wait(5)
        assert member.elector.holds_lease()
        assert server.spec["leaseTransitions"] == 0
        member.elector.stop()
        assert not member.stopped.is_set()

    def test_renewal_continues_while_the_caller_is_busy(self, server: LeaseInMemory) -> None:
        member = Member(server, "me", renew_deadline=1.5)
        member.elector.start()
        assert member.started.wait(5)
        end = time.monotonic() + 2.0
        while time.monotonic() < end:  # like a long slice of decisions, which blocks the event loop
            pass
        assert member.elector.holds_lease()
        member.elector.stop()

    def test_stop_does_not_wait_long_for_an_unreachable_server(self, server: LeaseInMemory) -> None:
        member = Member(server, "me")
        member.elector.start()
        assert member.started.wait(5)
        server.failure = ConnectionFailed("refused", sent=False)
        begin = time.monotonic()
        member.elector.stop()
        assert time.monotonic() - begin < 5.0
        assert not any(thread.name == "lease" for thread in threading.enumerate())

    def test_an_unexpected_error_ends_the_leadership(self, server: LeaseInMemory) -> None:
        member = Member(server, "me")
        member.elector.start()
        assert member.started.wait(5)
        server.failure = ZeroDivisionError()
        assert member.stopped.wait(5)
        assert not member.elector.holds_lease()

    def test_stop_can_be_called_from_a_callback(self, server: LeaseInMemory) -> None:
        member = Member(server, "me", renew_deadline=0.5)
        stopped = threading.Event()

        def on_stopped() -> None:
            member.elector.stop()
            stopped.set()

        member.on_stopped = on_stopped
        member.elector.start()
        assert member.started.wait(5)
        server.failure = ConnectionFailed("reset", sent=True)
        assert stopped.wait(5)

    def test_stop_before_start_does_nothing(self, server: LeaseInMemory) -> None:
        Member(server, "me").elector.stop()
        assert server.lease is None

    def test_an_elector_needs_an_identity(self, server: LeaseInMemory) -> None:
        with pytest.raises(UserError, match="give each process its own"):
            Member(server, "")
