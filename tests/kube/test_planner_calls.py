"""Calls of planners, and the errors about those that do not answer with a plan."""

import asyncio
import gc
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
import uvloop
from tests.live.planners import Context, Planner, answering, listener, refusing
from tests.podset.test_planner_wire import PLAN, PLAN_BYTES, REQUEST, REQUEST_BYTES
from tests.serve import http2
from tests.waiting import eventually_async

from longshore.kube.planner_calls import PlannerCalls, PlannerFailed
from longshore.serve.planner.service import PlannerServer

TOO_LONG = 17 * 2**20


async def call(address: str, *, timeout: float = 20) -> dict[str, str]:
    return await PlannerCalls().call(address, REQUEST, timeout=timeout)


async def problem(address: str, *, timeout: float = 20) -> str:
    """Return the error about the planner, without its name."""
    with pytest.raises(PlannerFailed) as caught:
        await call(address, timeout=timeout)
    assert str(caught.value) == f"planner {address} {caught.value.reason}"
    assert "\n" not in str(caught.value)
    return caught.value.reason


def held() -> tuple[Planner, asyncio.Event, asyncio.Event]:
    """Return a planner that never answers, and events for a request and for its cancellation."""
    asked, left = asyncio.Event(), asyncio.Event()

    async def answer(message: bytes, context: Context) -> bytes:
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            left.set()
        raise AssertionError

    return Planner(answer), asked, left


@pytest.fixture
def without_collector() -> Iterator[None]:
    """Disable the garbage collector: resources must be released without it."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


class TestCall:
    async def test_plan_of_the_planner(self) -> None:
        async with answering(PLAN_BYTES).running() as planner:
            assert await call(planner.address) == PLAN

    async def test_plan_without_pods(self) -> None:
        async with answering(b"").running() as planner:
            assert await call(planner.address) == {}

    async def test_the_request_has_the_fields_of_the_protocol(self) -> None:
        async with answering(PLAN_BYTES).running() as planner:
            await call(planner.address)
        [heard] = planner.heard
        assert heard.message == REQUEST_BYTES
        assert set(heard.metadata) <= {"user-agent"}

    async def test_deadline_travels_with_the_call(self) -> None:
        async with answering(PLAN_BYTES).running() as planner:
            await call(planner.address, timeout=15)
        assert 5 < planner.heard[0].seconds_left <= 15

    async def test_many_calls_at_a_time(self) -> None:
        async with answering(PLAN_BYTES).running() as planner:
            assert await asyncio.gather(*(call(planner.address) for _ in range(20))) == [PLAN] * 20

    async def test_every_call_opens_its_own_connection(self) -> None:
        async with answering(PLAN_BYTES).running() as planner:
            await asyncio.gather(*(call(planner.address) for _ in range(5)))
        assert len({heard.peer for heard in planner.heard}) == 5

    async def test_proxy_of_the_environment_is_not_asked(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("http_proxy", "https_proxy", "grpc_proxy"):
            monkeypatch.setenv(name, "http://127.0.0.1:9")
        async with answering(PLAN_BYTES).running() as planner:
            assert await call(planner.address) == PLAN

    def test_under_uvloop_as_the_scheduler_runs(self) -> None:
        async def build(request: object) -> dict[str, str]:
            return PLAN

        async def both() -> dict[str, str]:
            async with PlannerServer(build, listen="127.0.0.1:0") as server:
                await server.ready()
                return await call(f"127.0.0.1:{server.port}")

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            assert runner.run(both()) == PLAN


class TestTime:
    async def test_planner_that_hangs_is_cut_at_the_deadline(self) -> None:
        planner, _, left = held()
        async with planner.running():
            start = time.monotonic()
            assert await problem(planner.address, timeout=0.3) == "did not answer within 0.3 s"
            assert 0.2 < time.monotonic() - start < 5
            await asyncio.wait_for(left.wait(), 20)

    async def test_the_time_to_connect_counts_towards_the_deadline(self) -> None:
        """The server accepts the connection and sends nothing."""
        async with listener() as address:
            start = time.monotonic()
            assert await problem(address, timeout=0.3) == "did not answer within 0.3 s"
            assert 0.2 < time.monotonic() - start < 5

    async def test_cancelled_call_is_cancelled_at_the_planner_too(self) -> None:
        planner, asked, left = held()
        async with planner.running():
            calling = asyncio.create_task(call(planner.address))
            await asyncio.wait_for(asked.wait(), 20)
            calling.cancel()
            with pytest.raises(asyncio.CancelledError):
                await calling
            await asyncio.wait_for(left.wait(), 20)

    async def test_nothing_is_left_behind(self, without_collector: None) -> None:
        def open_files() -> int:
            return len(list(Path("/proc/self/fd").iterdir()))

        planner, _, _ = held()
        async with answering(PLAN_BYTES).running() as good, planner.running():

            async def each_once() -> None:
                await call(good.address)
                await problem(planner.address, timeout=0.02)
                await problem("127.0.0.1:9")

            await each_once()
            files, threads = open_files(), threading.active_count()
            for _ in range(10):
                await each_once()
            # The core closes connections from a thread of its own, a moment later.
            await eventually_async(open_files, lambda now: now <= files)
            assert threading.active_count() <= threads


class TestTrouble:
    async def test_an_address_where_nothing_listens(self) -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            port = taken.getsockname()[1]
            assert await problem(f"127.0.0.1:{port}") == "is unavailable: Connection refused"

    async def test_planner_that_has_come_back_is_called_at_once(self) -> None:
        async with answering(PLAN_BYTES).running() as planner:
            pass
        for _ in range(5):
            await problem(planner.address)
        async with planner.running(port=int(planner.address.rpartition(":")[2])):
            assert await call(planner.address, timeout=5) == PLAN

    async def test_name_without_an_address(self) -> None:
        assert await problem("no name:7309") == "has no address: Misformatted domain name"

    async def test_connection_reset_while_dialling(self) -> None:
        async with listener(reset=True) as address:
            assert "Connection reset by peer" in await problem(address)

    async def test_connection_reset_instead_of_an_answer(self) -> None:
        async with listener(http2.settings(), reset=True) as address:
            assert (await problem(address)).startswith("is unavailable: ")

    async def test_failure_of_the_planner_with_its_text(self) -> None:
        async with refusing(grpc.StatusCode.INTERNAL, "schedule plan\nlist pods error").running() as planner:
            assert await problem(planner.address) == "failed: schedule plan list pods error"

    async def test_failure_without_a_text(self) -> None:
        async with refusing(grpc.StatusCode.INTERNAL, "").running() as planner:
            assert await problem(planner.address) == "failed: no explanation given"

    async def test_any_other_failure_is_reported_with_its_code(self) -> None:
        async with refusing(grpc.StatusCode.PERMISSION_DENIED, "not you").running() as planner:
            assert await problem(planner.address) == "failed: not you (PERMISSION_DENIED)"

    async def test_planner_that_is_not_ready(self) -> None:
        async with refusing(grpc.StatusCode.UNAVAILABLE, "still starting").running() as planner:
            assert await problem(planner.address) == "is unavailable: still starting"

    async def test_server_of_something_else(self) -> None:
        async with answering(b"", service="planner.Other").running() as other:
            assert await problem(other.address) == (
                "is not a planner: it does not know /planner.SchedulePlanner/BuildSchedulePlan"
                " (Method not found!)"
            )

    async def test_a_web_server_in_place_of_a_planner(self) -> None:
        async with listener(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n") as address:
            assert await problem(address) == "is not a planner: it speaks HTTP/1, not gRPC"

    async def test_server_of_another_protocol(self) -> None:
        async with listener(b"SSH-2.0-OpenSSH_9.9\r\n") as address:
            assert await problem(address) == "is not a planner: it does not speak gRPC"

    async def test_rubbish_in_place_of_a_plan(self) -> None:
        async with answering(b"\xff" * 20).running() as planner:
            assert await problem(planner.address) == (
                "sent an invalid answer: the answer is not a SchedulePlanResponse"
            )

    @pytest.mark.parametrize("compression", [None, grpc.Compression.Gzip])
    async def test_answer_that_is_too_long(self, compression: grpc.Compression | None) -> None:
        async with answering(bytes(TOO_LONG)).running(compression=compression) as planner:
            assert await problem(planner.address) == "sent an answer of more than 16 MiB"

    async def test_without_the_extra(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "grpc.aio", None)
        assert "install longshore[planner]" in await problem("127.0.0.1:9")


def test_the_grpc_core_adds_no_lines_to_the_log(tmp_path: Path) -> None:
    """By default the gRPC core writes about the missing handshake between the lines of our log."""
    script = """if True:
        import asyncio, sys
        from pathlib import Path
        from longshore.api.plan_request import PlanRequest
        from longshore.dev.certificates import Authority
        from longshore.kube.planner_calls import ClientTLS, PlannerCalls, PlannerFailed

        async def main():
            async def talk(reader, writer):
                await reader.read(1)
                writer.write(b"HTTP/1.1 400 Bad Request\\r\\n\\r\\n")
                writer.close()
            server = await asyncio.start_server(talk, "127.0.0.1", 0)
            address = "127.0.0.1:%d" % server.sockets[0].getsockname()[1]
            calls = PlannerCalls(ClientTLS(ca=Authority(Path(sys.argv[1])).file))
            try:
                await calls.call(address, PlanRequest("a", "b", "c"), timeout=20)
            except PlannerFailed as failure:
                print(failure.reason)

        asyncio.run(main())
    """
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("does not speak TLS\n", "")
