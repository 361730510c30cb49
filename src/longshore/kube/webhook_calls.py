"""Calls of webhooks (HTTP extenders), as kube-scheduler makes them: POST, JSON, one try, a time limit."""

import ssl
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import aiohttp

from longshore.config import Webhook, WebhookTLS
from longshore.engine.events import Answered, Failed
from longshore.errors import UserError
from longshore.framework.effects import CallWebhook
from longshore.kube.client import USER_AGENT
from longshore.kube.tls import Unusable, identify, trust

# All nodes of a large cluster, sent as objects, take a tenth of it.
_MAX_ANSWER = 256 * 2**20


class WebhookCalls:
    """Calls the webhooks of a configuration, with one session for each."""

    def __init__(self, webhooks: Sequence[Webhook]) -> None:
        self._webhooks = webhooks
        self._contexts = [_context(webhook) for webhook in webhooks]
        self._sessions: list[aiohttp.ClientSession] = []

    def __bool__(self) -> bool:
        return bool(self._webhooks)

    async def __aenter__(self) -> Self:
        for webhook, context in zip(self._webhooks, self._contexts, strict=True):
            self._sessions.append(
                aiohttp.ClientSession(
                    connector=aiohttp.TCPConnector(ssl=context),
                    timeout=aiohttp.ClientTimeout(total=webhook.http_timeout),
                    headers={"User-Agent": USER_AGENT, "Content-Type": "application/json"},
                )
            )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for session in self._sessions:
            await session.close()
        self._sessions.clear()

    async def call(self, effect: CallWebhook) -> Answered | Failed:
        webhook = self._webhooks[effect.webhook]
        url = f"{webhook.url_prefix.rstrip('/')}/{effect.verb}"
        name = webhook.tls_config.server_name if webhook.tls_config else ""
        session = self._sessions[effect.webhook]
        try:
            async with session.post(url, data=effect.body, server_hostname=name or None) as response:
                if response.status != 200:
                    return Failed(f"failed {effect.verb} with extender at URL {url}, code {response.status}")
                body = bytearray()
                async for chunk in response.content.iter_any():
                    body += chunk
                    if len(body) > _MAX_ANSWER:
                        return Failed(f'Post "{url}": the answer is longer than {_MAX_ANSWER >> 20} MiB')
                return Answered(bytes(body))
        except TimeoutError:
            return Failed(f'Post "{url}": no answer within {webhook.http_timeout:g}s')
        except (aiohttp.ClientError, OSError) as error:
            return Failed(f'Post "{url}": {error or type(error).__name__}')


def _context(webhook: Webhook) -> ssl.SSLContext:
    tls = webhook.tls_config or WebhookTLS()
    try:
        authority = tls.ca_data or _content(tls.ca_file)
        unverified = tls.insecure or (webhook.enable_https and not authority)
        context = trust(authority or None, verify=not unverified)
        if certificate := tls.cert_data or _content(tls.cert_file):
            identify(context, certificate=certificate, key=tls.key_data or _content(tls.key_file))
    except Unusable as error:
        raise UserError(f"extender {webhook.url_prefix}: a certificate {error}") from error
    except OSError as error:
        raise UserError(
            f"extender {webhook.url_prefix}: cannot read {error.filename}: {error.strerror}"
        ) from error
    return context


def _content(path: str) -> bytes:
    return Path(path).read_bytes() if path else b""
