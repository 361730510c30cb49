"""The planner server, called by clients that know only the protocol."""

import asyncio
import contextlib
import socket
import sys
from collections.abc import AsyncIterator, Callable, Mapping

import grpc
import grpc.aio
import pytest
from google.protobuf import descriptor_pool, json_format, message_factory
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from tests.podset.test_planner_wire import PLAN, PLAN_BYTES, REQUEST, REQUEST_BYTES
from tests.serve import http2

from longshore.api.plan_request import PlanRequest
from longshore.errors import UserError
from longshore.serve.planner.service import MAX_PLANS, Build, PlannerServer

PATH = "/planner.SchedulePlanner/BuildSchedulePlan"
SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


class Builder:
    """Builds the same plan for each request, and holds each back until it is released, or forever."""

    def __init__(self, *, held: bool = False) -> None:
        self.asked: list[PlanRequest] = []
        self.begun = asyncio.Semaphore(0)
        self.cancelled = asyncio.Semaphore(0)
        self.let_go = asyncio.Event()
        if not held:
            self.let_go.set()

    async def __call__(self, request: PlanRequest) -> Mapping[str, str]:
        self.asked.append(request)
        self.begun.release()
        try:
            await self.let_go.wait()
        except asyncio.CancelledError:
            self.cancelled.release()
            raise
        return PLAN


async def broken(request: PlanRequest) -> Mapping[str, str]:
    raise LookupError("no node\nis left")


@contextlib.asynccontextmanager
async def served(build: Build, *, grace: float = 0.1) -> AsyncIterator[grpc.aio.Channel]:
    """Open a channel to a planner that is ready."""
    async with PlannerServer(build, listen="127.0.0.1:0", grace=grace) as server:
        await server.ready()
        async with channel_to(server) as channel:
            yield channel


def channel_to(server: PlannerServer) -> grpc.aio.Channel:
    return grpc.aio.insecure_channel(f"127.0.0.1:{server.port}", options=[("grpc.enable_http_proxy", 0)])


async def ask(
    channel: grpc.aio.Channel, message: bytes = REQUEST_BYTES, *, timeout: float | None = 20
) -> bytes:
    method: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(PATH)
    return await method(message, timeout=timeout)


async def refusal(
    channel: grpc.aio.Channel, message: bytes = REQUEST_BYTES, *, timeout: float | None = 20
) -> tuple[grpc.StatusCode, str | None]:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await ask(channel, message, timeout=timeout)
    return caught.value.code(), caught.value.details()


async def health(channel: grpc.aio.Channel, service: str) -> int:
    request = health_pb2.HealthCheckRequest(service=service)
    answer = await health_pb2_grpc.HealthStub(channel).Check(request, timeout=20)
    status: int = answer.status
    return status


class TestPlans:
    async def test_request_reaches_the_builder_and_the_plan_the_caller(self) -> None:
        build = Builder()
        async with served(build) as channel:
            assert await ask(channel) == PLAN_BYTES
        assert build.asked == [REQUEST]

    async def test_caller_that_knows_the_service_only_by_reflection(self) -> None:
        def call(target: str) -> tuple[str, dict[str, str]]:
            with grpc.insecure_channel(target, options=[("grpc.enable_http_proxy", 0)]) as channel:
                pool = descriptor_pool.DescriptorPool(ProtoReflectionDescriptorDatabase(channel))
                [method] = pool.FindServiceByName("planner.SchedulePlanner").methods
                message = message_factory.GetMessageClass(method.input_type)
                request = message(
                    namespace="default",
                    podSet="planner-podset",
                    scheduledPod="p1",
                    eligibleNodes=["n1", "n2"],
                )
                path = f"/{method.containing_service.full_name}/{method.name}"
                answer = message_factory.GetMessageClass(method.output_type).FromString
                plan = channel.unary_unary(path, message.SerializeToString, answer)(request, timeout=20)
                return path, json_format.MessageToDict(plan)["assignments"]

        build = Builder()
        async with PlannerServer(build, listen="127.0.0.1:0") as server:
            await server.ready()
            assert await asyncio.to_thread(call, f"127.0.0.1:{server.port}") == (PATH, PLAN)
        assert build.asked == [REQUEST]

    async def test_services_are_listed_by_reflection(self) -> None:
        def services(target: str) -> set[str]:
            with grpc.insecure_channel(target, options=[("grpc.enable_http_proxy", 0)]) as channel:
                return set(ProtoReflectionDescriptorDatabase(channel).get_services())

        async with PlannerServer(Builder(), listen="127.0.0.1:0") as server:
            assert await asyncio.to_thread(services, f"127.0.0.1:{server.port}") == {
                "planner.SchedulePlanner",
                "grpc.health.v1.Health",
                "grpc.reflection.v1alpha.ServerReflection",
            }

    async def test_caller_without_any_grpc_library(self) -> None:
        async with PlannerServer(Builder(), listen="127.0.0.1:0") as server:
            await server.ready()
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(http2.call(PATH, REQUEST_BYTES, timeout="20S"))
            await asyncio.wait_for(reader.readuntil(http2.framed(PLAN_BYTES)), 20)
            writer.close()


class TestErrors:
    async def test_exception_in_the_builder_reaches_the_caller(self) -> None:
        async with served(broken) as channel:
            assert await refusal(channel) == (grpc.StatusCode.INTERNAL, "no node is left")

    async def test_error_without_text_is_reported_by_its_type(self) -> None:
        async def build(request: PlanRequest) -> Mapping[str, str]:
            raise NotImplementedError

        async with served(build) as channel:
            assert await refusal(channel) == (grpc.StatusCode.INTERNAL, "NotImplementedError")

    async def test_error_with_an_endless_text_still_arrives(self) -> None:
        async def build(request: PlanRequest) -> Mapping[str, str]:
            raise LookupError("ü" * 3_000)

        async with served(build) as channel:
            code, text = await refusal(channel)
        assert code is grpc.StatusCode.INTERNAL
        assert text is not None
        assert set(text) == {"ü"}

    async def test_the_next_call_after_an_error_is_answered(self) -> None:
        async def build(request: PlanRequest) -> Mapping[str, str]:
            if request.scheduled_pod:
                raise LookupError
            return PLAN

        async with served(build) as channel:
            await refusal(channel)
            assert await ask(channel, bytes.fromhex("0a0161120162")) == PLAN_BYTES

    async def test_invalid_plan_is_an_error_for_the_caller(self) -> None:
        async def build(request: PlanRequest) -> Mapping[str, str]:
            return {"p1": 7}  # type: ignore[dict-item] # what is tested

        async with served(build) as channel:
            code, _ = await refusal(channel)
        assert code is grpc.StatusCode.INTERNAL

    @pytest.mark.parametrize(
        "message",
        [bytes.fromhex("120162"), bytes.fromhex("0a0161"), b"", b"\xff" * 9],
        ids=["no namespace", "no pod set", "empty", "rubbish"],
    )
    async def test_request_that_asks_for_nothing(self, message: bytes) -> None:
        build = Builder()
        async with served(build) as channel:
            code, _ = await refusal(channel, message)
        assert code is grpc.StatusCode.INVALID_ARGUMENT
        assert build.asked == []

    async def test_a_method_that_the_service_does_not_have_is_unimplemented(self) -> None:
        async with served(Builder()) as channel:
            method: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(f"{PATH}s")
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await method(REQUEST_BYTES, timeout=20)
        assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


class TestBounds:
    async def test_request_that_is_too_long(self) -> None:
        build = Builder()
        async with served(build) as channel:
            code, _ = await refusal(channel, bytes(17 * 2**20))
        assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert build.asked == []

    async def test_more_plans_than_are_made_at_a_time(self) -> None:
        build = Builder(held=True)
        async with served(build) as channel:
            calls = [asyncio.create_task(ask(channel)) for _ in range(MAX_PLANS)]
            for _ in calls:
                await asyncio.wait_for(build.begun.acquire(), 20)
            code, _ = await refusal(channel)
            health_meanwhile = await health(channel, "")
            build.let_go.set()
            assert await asyncio.gather(*calls) == [PLAN_BYTES] * MAX_PLANS
        assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert health_meanwhile == SERVING

    async def test_cancelled_plans_do_not_count(self) -> None:
        build = Builder(held=True)
        async with served(build) as channel:
            calls = [asyncio.create_task(ask(channel)) for _ in range(MAX_PLANS)]
            for _ in calls:
                await asyncio.wait_for(build.begun.acquire(), 20)
            for call in calls:
                call.cancel()
            for _ in calls:
                await asyncio.wait_for(build.cancelled.acquire(), 20)
            build.let_go.set()
            assert await ask(channel) == PLAN_BYTES

    async def test_deadline_of_the_caller_ends_the_building(self) -> None:
        build = Builder(held=True)
        async with served(build) as channel:
            code, _ = await refusal(channel, timeout=0.1)
            await asyncio.wait_for(build.cancelled.acquire(), 20)
        assert code is grpc.StatusCode.DEADLINE_EXCEEDED

    async def test_deadline_is_kept_by_the_server_itself(self) -> None:
        """The client sends nothing when its deadline passes."""
        build = Builder(held=True)
        async with PlannerServer(build, listen="127.0.0.1:0", grace=0) as server:
            await server.ready()
            _, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(http2.call(PATH, REQUEST_BYTES, timeout="100m"))
            await asyncio.wait_for(build.cancelled.acquire(), 20)
            writer.close()

    async def test_caller_that_disconnects_cancels_the_plan(self) -> None:
        build = Builder(held=True)
        async with served(build) as channel:
            call = asyncio.create_task(ask(channel))
            await asyncio.wait_for(build.begun.acquire(), 20)
            call.cancel()
            await asyncio.wait_for(build.cancelled.acquire(), 20)


class TestReadiness:
    @pytest.mark.parametrize("service", ["", "planner.SchedulePlanner"])
    async def test_health_before_and_after_the_planner_is_ready(self, service: str) -> None:
        async with PlannerServer(Builder(), listen="127.0.0.1:0") as server, channel_to(server) as channel:
            before = await health(channel, service)
            await server.ready()
            assert (before, await health(channel, service)) == (NOT_SERVING, SERVING)

    async def test_call_before_it_is_ready(self) -> None:
        build = Builder()
        async with PlannerServer(build, listen="127.0.0.1:0") as server, channel_to(server) as channel:
            code, _ = await refusal(channel)
        assert code is grpc.StatusCode.UNAVAILABLE
        assert build.asked == []

    async def test_the_health_of_an_unknown_service(self) -> None:
        async with served(Builder()) as channel:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await health(channel, "planner.Other")
        assert caught.value.code() is grpc.StatusCode.NOT_FOUND


class TestStop:
    async def stop_during(self, build: Builder, *, grace: float, then: Callable[[], None]) -> bytes:
        """Ask, begin to stop the server while it builds the plan, and return what follows."""
        server = PlannerServer(build, listen="127.0.0.1:0", grace=grace)
        await server.__aenter__()
        await server.ready()
        async with channel_to(server) as channel:
            call = asyncio.create_task(ask(channel))
            await asyncio.wait_for(build.begun.acquire(), 20)
            stopping = asyncio.create_task(server.__aexit__(None, None, None))
            with contextlib.suppress(grpc.aio.AioRpcError):
                # New requests are refused.
                while True:
                    await health(channel, "")
            then()
            await asyncio.wait_for(stopping, 20)
            return await call

    async def test_plan_that_gets_done_within_the_grace(self) -> None:
        build = Builder(held=True)
        assert await self.stop_during(build, grace=20, then=build.let_go.set) == PLAN_BYTES

    async def test_plan_that_does_not(self) -> None:
        build = Builder(held=True)
        with pytest.raises(grpc.aio.AioRpcError):
            await self.stop_during(build, grace=0.1, then=lambda: None)
        assert not build.cancelled.locked()

    async def test_health_watchers_see_the_planner_stop(self) -> None:
        async with contextlib.AsyncExitStack() as stack:
            server = await stack.enter_async_context(
                PlannerServer(Builder(), listen="127.0.0.1:0", grace=0.2)
            )
            await server.ready()
            async with channel_to(server) as channel:
                watch = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest(), timeout=20)
                first = (await watch.read()).status
                closing = asyncio.create_task(stack.aclose())
                assert (first, (await watch.read()).status) == (SERVING, NOT_SERVING)
                await closing


class TestAddress:
    async def test_port_that_is_taken(self) -> None:
        async with PlannerServer(Builder(), listen="127.0.0.1:0") as server:
            address = f"127.0.0.1:{server.port}"
            with pytest.raises(UserError) as caught:
                await PlannerServer(Builder(), listen=address).__aenter__()
        assert str(caught.value) == (
            f"cannot serve plans on {address}: Address already in use; "
            "choose another with --listen, or port 0 for any"
        )

    async def test_address_of_another_machine(self) -> None:
        with pytest.raises(
            UserError, match=r"^cannot serve plans on 192\.0\.2\.1:0: Cannot assign requested"
        ):
            await PlannerServer(Builder(), listen="192.0.2.1:0").__aenter__()

    @pytest.mark.parametrize(
        "listen", ["", "7777", "localhost", ":http", ":65536", "::1:7777", "unix:/tmp/x"]
    )
    def test_an_invalid_listen_address_is_refused(self, listen: str) -> None:
        with pytest.raises(UserError, match=r"give an address and a port, such as :7777$"):
            PlannerServer(Builder(), listen=listen)

    async def test_the_port_is_closed_afterwards(self) -> None:
        async with PlannerServer(Builder(), listen="127.0.0.1:0") as server:
            pass
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.1", server.port)) != 0

    async def test_planner_without_its_extra_says_what_to_install(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "grpc.aio", None)
        with pytest.raises(UserError, match=r"install longshore\[planner\]"):
            await PlannerServer(Builder(), listen="127.0.0.1:0").__aenter__()
