"""Plans over TLS: the planner server and the client for planners, with valid and invalid certificates."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.kube import pki
from tests.podset.test_planner_wire import PLAN, REQUEST

from longshore.api.plan_request import PlanRequest
from longshore.dev.certificates import Authority
from longshore.dev.keys import Pair
from longshore.errors import UserError
from longshore.kube.planner_calls import ClientTLS, PlannerCalls, PlannerFailed
from longshore.serve.planner.service import PlannerServer
from longshore.serve.tls_files import TLSFiles

NAME = "planner.example"


async def build(request: PlanRequest) -> Mapping[str, str]:
    return PLAN


def authority(folder: Path) -> Authority:
    folder.mkdir()
    return Authority(folder)


@pytest.fixture
def ours(tmp_path: Path) -> Authority:
    return authority(tmp_path / "ours")


@pytest.fixture
def theirs(tmp_path: Path) -> Authority:
    """A CA that the other side does not know."""
    return authority(tmp_path / "theirs")


@pytest.fixture
def pair(ours: Authority) -> Pair:
    """The credentials of the planner."""
    return ours.server("planner", hosts=[NAME], addresses=["127.0.0.1"])


def server(pair: Pair, client_ca: Path | None = None) -> PlannerServer:
    return PlannerServer(build, listen="127.0.0.1:0", tls=TLSFiles(pair.public, pair.private, client_ca))


async def call(running: PlannerServer, tls: ClientTLS | None) -> dict[str, str]:
    await running.ready()
    return await PlannerCalls(tls).call(f"127.0.0.1:{running.port}", REQUEST, timeout=20)


async def problem(running: PlannerServer, tls: ClientTLS | None) -> str:
    with pytest.raises(PlannerFailed) as caught:
        await call(running, tls)
    assert "\n" not in str(caught.value)
    return caught.value.reason


class TestCaller:
    async def test_trusts_the_authority_of_the_planner(self, ours: Authority, pair: Pair) -> None:
        async with server(pair) as running:
            assert await call(running, ClientTLS(ours.file)) == PLAN

    async def test_client_that_trusts_another_ca_fails(self, theirs: Authority, pair: Pair) -> None:
        async with server(pair) as running:
            assert await problem(running, ClientTLS(theirs.file)) == (
                "presents a certificate that is not trusted: unable to get local issuer certificate"
            )

    async def test_expects_a_name_that_the_certificate_has(self, ours: Authority, pair: Pair) -> None:
        async with server(pair) as running:
            assert await call(running, ClientTLS(ours.file, server_name=NAME)) == PLAN

    async def test_client_that_expects_another_name_fails(self, ours: Authority, pair: Pair) -> None:
        async with server(pair) as running:
            assert await problem(running, ClientTLS(ours.file, server_name="else.example")) == (
                "presents a certificate for another name"
            )

    async def test_speaks_clear_text_to_a_planner_with_tls(self, pair: Pair) -> None:
        async with server(pair) as running:
            assert await problem(running, None) == "closed the connection at once: it may want TLS"

    async def test_speaks_tls_to_a_planner_without(self, ours: Authority) -> None:
        async with PlannerServer(build, listen="127.0.0.1:0") as running:
            assert await problem(running, ClientTLS(ours.file)) == "does not speak TLS"

    async def test_takes_up_an_authority_that_was_replaced(
        self, ours: Authority, theirs: Authority, pair: Pair, tmp_path: Path
    ) -> None:
        trusted = tmp_path / "ca.crt"
        trusted.write_bytes(theirs.file.read_bytes())
        calls = PlannerCalls(ClientTLS(trusted))
        trusted.write_bytes(ours.file.read_bytes())
        async with server(pair) as running:
            await running.ready()
            assert await calls.call(f"127.0.0.1:{running.port}", REQUEST, timeout=20) == PLAN


class TestCallerWithACertificate:
    def tls(self, ours: Authority, shown: Pair) -> ClientTLS:
        return ClientTLS(ours.file, certificate=shown.public, key=shown.private)

    async def test_that_the_planner_asks_for(self, ours: Authority, pair: Pair) -> None:
        shown = ours.client("scheduler", user="scheduler")
        async with server(pair, ours.file) as running:
            assert await call(running, self.tls(ours, shown)) == PLAN

    async def test_certificate_of_another_ca_closes_the_connection(
        self, ours: Authority, theirs: Authority, pair: Pair
    ) -> None:
        shown = theirs.client("scheduler", user="scheduler")
        async with server(pair, ours.file) as running:
            assert await problem(running, self.tls(ours, shown)) == (
                "closed the connection at once: it may want another client certificate"
            )

    async def test_a_client_certificate_is_missing(self, ours: Authority, pair: Pair) -> None:
        async with server(pair, ours.file) as running:
            assert await problem(running, ClientTLS(ours.file)) == (
                "closed the connection at once: it may want another client certificate"
            )

    def test_certificate_without_its_key_is_an_error(self, ours: Authority) -> None:
        shown = ours.client("scheduler", user="scheduler")
        with pytest.raises(UserError, match="requires its key"):
            PlannerCalls(ClientTLS(ours.file, certificate=shown.public))

    def test_with_the_key_of_another(self, ours: Authority, pair: Pair) -> None:
        shown = ours.client("scheduler", user="scheduler")
        with pytest.raises(UserError, match=f"{shown.public} does not belong to the client key"):
            PlannerCalls(ClientTLS(ours.file, certificate=shown.public, key=pair.private))


class TestFiles:
    def test_authority_that_is_not_there(self, tmp_path: Path) -> None:
        missing = tmp_path / "ca.crt"
        with pytest.raises(UserError, match=f"^cannot read {missing}: No such file or directory$"):
            PlannerCalls(ClientTLS(missing))

    def test_authority_that_is_no_certificate(self, tmp_path: Path) -> None:
        rubbish = tmp_path / "ca.crt"
        rubbish.write_text("rubbish")
        with pytest.raises(UserError, match=f"^cannot verify planners: {rubbish} contains no certificate"):
            PlannerCalls(ClientTLS(rubbish))

    async def test_authority_that_vanishes_while_the_scheduler_runs(self, ours: Authority) -> None:
        calls = PlannerCalls(ClientTLS(ours.file))
        ours.file.unlink()
        with pytest.raises(PlannerFailed, match=f"cannot be called: cannot read {ours.file}"):
            await calls.call("127.0.0.1:9", REQUEST, timeout=20)

    async def test_certificate_of_the_planner_that_is_not_there(self, pair: Pair) -> None:
        pair.public.unlink()
        with pytest.raises(UserError, match=f"^cannot serve with certificate {pair.public}"):
            await server(pair).__aenter__()

    async def test_authority_of_callers_that_is_no_certificate(self, pair: Pair, tmp_path: Path) -> None:
        rubbish = tmp_path / "clients.crt"
        rubbish.write_text("rubbish")
        with pytest.raises(UserError, match=f"^cannot verify clients: {rubbish} contains no certificate"):
            await server(pair, rubbish).__aenter__()

    async def test_authority_of_callers_that_is_not_there(self, pair: Pair, tmp_path: Path) -> None:
        missing = tmp_path / "clients.crt"
        with pytest.raises(UserError, match=f"^cannot serve with TLS: {missing}: No such file or directory$"):
            await server(pair, missing).__aenter__()


class TestRenewal:
    async def test_certificate_that_was_renewed_is_shown(
        self, ours: Authority, theirs: Authority, pair: Pair
    ) -> None:
        async with server(pair) as running:
            assert await call(running, ClientTLS(ours.file)) == PLAN
            renewed = theirs.server("planner", hosts=[NAME], addresses=["127.0.0.1"])
            pair.public.write_bytes(renewed.public.read_bytes())
            pair.private.write_bytes(renewed.private.read_bytes())
            assert await call(running, ClientTLS(theirs.file)) == PLAN

    async def test_unusable_renewed_certificate_is_ignored(self, ours: Authority, pair: Pair) -> None:
        async with server(pair) as running:
            pair.public.write_bytes(pki.client().certificate)
            assert await call(running, ClientTLS(ours.file)) == PLAN
