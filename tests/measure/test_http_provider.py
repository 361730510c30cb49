"""Requests to providers over HTTP: credentials, trusted CAs, and errors."""

import ssl
from pathlib import Path

import pytest
from aiohttp import web
from msgspec.structs import replace
from tests.kube import pki
from tests.measure.weblistener import listening

from longshore.config import MeasurementSettings
from longshore.errors import UserError
from longshore.measure.http_provider import HttpClient
from longshore.measure.providers import ProviderFailed


async def _headers(request: web.Request) -> web.Response:
    return web.json_response(dict(request.headers))


async def got(settings: MeasurementSettings, path: str = "/x") -> tuple[int, str]:
    provider = HttpClient(settings)
    try:
        status, body = await provider.get(path)
        return status, body.decode()
    finally:
        await provider.close()


def at(port: int, **settings: object) -> MeasurementSettings:
    return replace(MeasurementSettings(provider="prometheus", address=f"http://127.0.0.1:{port}"), **settings)


async def test_headers_of_the_settings_are_sent() -> None:
    async with listening(_headers) as port:
        _, body = await got(at(port, headers={"X-Scope-OrgID": "team"}))
    assert '"X-Scope-OrgID": "team"' in body


async def test_a_token_that_was_replaced_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("old\n")
    seen: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append(request.headers["Authorization"])
        if seen[-1] != "Bearer new":
            file.write_text("new\n")
            raise web.HTTPUnauthorized
        return web.Response(text="fine")

    async with listening(answer) as port:
        assert await got(at(port, token_file=str(file))) == (200, "fine")
    assert seen == ["Bearer old", "Bearer new"]


async def test_a_token_that_is_refused_twice_is_the_answer(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("wrong")

    async def answer(_request: web.Request) -> web.Response:
        raise web.HTTPUnauthorized(text="who are you?")

    async with listening(answer) as port:
        assert await got(at(port, token_file=str(file))) == (401, "who are you?")


async def test_a_redirect_is_reported_and_not_followed() -> None:
    """Headers and tokens are only for the configured address."""

    async def answer(_request: web.Request) -> web.Response:
        raise web.HTTPFound("http://elsewhere/login")

    async with listening(answer) as port:
        with pytest.raises(ProviderFailed) as failure:
            await got(at(port))
    assert str(failure.value) == (
        f"http://127.0.0.1:{port}/x redirects to http://elsewhere/login: use that address if it is correct"
    )


async def test_an_address_where_nothing_listens() -> None:
    with pytest.raises(ProviderFailed, match=r"^http://127\.0\.0\.1:9/x: .*Connect call failed|refused"):
        await got(at(9))


def _served(tmp_path: Path) -> ssl.SSLContext:
    file = tmp_path / "server.pem"
    file.write_bytes(pki.server().certificate + pki.server().key)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(file)
    return context


@pytest.mark.parametrize(
    ("authority", "insecure", "trusted"), [(True, False, True), (False, False, False), (False, True, True)]
)
async def test_certificates_are_verified_unless_disabled(
    tmp_path: Path, authority: bool, insecure: bool, trusted: bool
) -> None:
    file = tmp_path / "ca.pem"
    file.write_bytes(pki.authority().certificate)
    settings = at(0, ca_file=str(file) if authority else "", insecure_skip_verify=insecure)
    async with listening(_headers, _served(tmp_path)) as port:
        settings = replace(settings, address=f"https://localhost:{port}")
        if trusted:
            assert (await got(settings))[0] == 200
        else:
            with pytest.raises(ProviderFailed, match="CERTIFICATE_VERIFY_FAILED"):
                await got(settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"ca_file": "/no/such"}, "measurements: cannot read /no/such: No such file or directory"),
        ({"token_file": "/no/such"}, "cannot read the token file /no/such: No such file or directory"),
    ],
)
def test_files_that_cannot_be_read_are_an_error_at_the_start(settings: dict[str, str], message: str) -> None:
    with pytest.raises(UserError) as failure:
        HttpClient(at(9, **settings))
    assert str(failure.value) == message


def test_an_authority_that_is_no_certificate(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_text("rubbish")
    with pytest.raises(
        UserError, match=r"^measurements: the CA certificate .*ca\.pem contains no certificate"
    ):
        HttpClient(at(9, ca_file=str(file)))
