"""Calls of extenders: addresses, certificates and timeouts."""

import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web
from tests.kube import pki

from longshore.config import Webhook, WebhookTLS
from longshore.engine import Answered, Failed
from longshore.errors import UserError
from longshore.framework.effects import CallWebhook
from longshore.kube.webhook_calls import WebhookCalls

CALL = CallWebhook(0, "filter", b'{"Pod": null}')


async def _echo(request: web.Request) -> web.Response:
    if request.path != "/base/filter":
        raise web.HTTPGone
    return web.Response(text=f"{request.content_type} {await request.text()}")


@asynccontextmanager
async def server(tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """Run an extender that answers with its request, and return its port."""
    application = web.Application()
    application.router.add_post("/{path:.*}", _echo)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


def served(tmp_path: Path, *, clients: bool = False) -> ssl.SSLContext:
    file = tmp_path / "server.pem"
    file.write_bytes(pki.server().certificate + pki.server().key)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(file)
    if clients:
        context.load_verify_locations(cadata=pki.authority().certificate.decode())
        context.verify_mode = ssl.CERT_REQUIRED
    return context


async def call(webhook: Webhook, effect: CallWebhook = CALL) -> Answered | Failed:
    async with WebhookCalls([webhook]) as calls:
        return await calls.call(effect)


@pytest.mark.parametrize("prefix", ["base", "base/"])
async def test_the_verb_follows_the_prefix_and_json_is_posted(prefix: str) -> None:
    async with server() as port:
        answer = await call(Webhook(f"http://127.0.0.1:{port}/{prefix}"))
    assert answer == Answered(b'application/json {"Pod": null}')


async def test_an_answer_that_is_not_ok_is_a_failure() -> None:
    async with server() as port:
        url = f"http://127.0.0.1:{port}/else"
        answer = await call(Webhook(url))
    assert answer == Failed(f"failed filter with extender at URL {url}/filter, code 410")


async def test_a_call_to_an_address_where_nothing_listens_fails() -> None:
    answer = await call(Webhook("http://127.0.0.1:9"))
    assert isinstance(answer, Failed)
    assert answer.message.startswith('Post "http://127.0.0.1:9/filter": ')


async def test_the_wait_for_a_silent_extender_ends_at_the_configured_time() -> None:
    """The kernel accepts the connection, and no program answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        answer = await call(Webhook(url, http_timeout=0.2))
    assert answer == Failed(f'Post "{url}/filter": no answer within 0.2s')


AUTHORITY = WebhookTLS(ca_data=pki.authority().certificate)
CLIENT = WebhookTLS(
    ca_data=pki.authority().certificate,
    cert_data=pki.client().certificate,
    key_data=pki.client().key,
)


@pytest.mark.parametrize(
    ("host", "tls", "enable_https", "trusted"),
    [
        ("localhost", AUTHORITY, False, True),
        ("localhost", None, False, False),
        # As kube-scheduler does.
        ("localhost", None, True, True),
        ("127.0.0.1", AUTHORITY, True, False),
        ("127.0.0.1", WebhookTLS(ca_data=AUTHORITY.ca_data, server_name="localhost"), True, True),
        ("127.0.0.1", WebhookTLS(insecure=True), False, True),
    ],
)
async def test_an_https_extender_is_verified_by_its_ca_and_host(
    tmp_path: Path, host: str, tls: WebhookTLS | None, enable_https: bool, trusted: bool
) -> None:
    async with server(served(tmp_path)) as port:
        webhook = Webhook(f"https://{host}:{port}/base", tls_config=tls, enable_https=enable_https)
        answer = await call(webhook)
    assert isinstance(answer, Answered) is trusted


@pytest.mark.parametrize(("tls", "accepted"), [(CLIENT, True), (AUTHORITY, False)])
async def test_an_extender_that_asks_who_we_are(tmp_path: Path, tls: WebhookTLS, accepted: bool) -> None:
    async with server(served(tmp_path, clients=True)) as port:
        answer = await call(Webhook(f"https://localhost:{port}/base", tls_config=tls))
    assert isinstance(answer, Answered) is accepted


@pytest.mark.parametrize(
    ("tls", "words"),
    [
        (WebhookTLS(ca_file="/no/such/file"), "cannot read /no/such/file: No such file or directory"),
        (WebhookTLS(ca_data=b"rubbish"), "a certificate contains no certificate"),
    ],
)
def test_certificates_that_cannot_be_used_are_told_at_the_start(tls: WebhookTLS, words: str) -> None:
    with pytest.raises(UserError, match=r"^extender https://a: ") as caught:
        WebhookCalls([Webhook("https://a", tls_config=tls)])
    assert words in str(caught.value)
