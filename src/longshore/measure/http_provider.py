"""How a provider is asked over HTTP: whom we trust, who we are, and each refusal as one line."""

import ssl
from collections.abc import Mapping
from pathlib import Path

import aiohttp

from longshore.config import MeasurementSettings
from longshore.errors import UserError
from longshore.kube.client import USER_AGENT
from longshore.kube.credentials import TokenFile
from longshore.kube.tls import Unusable, trust
from longshore.measure.providers import TIMEOUT, ProviderFailed

# What is known of 5,000 nodes is a hundredth of it.
_MAX_ANSWER = 256 * 2**20
_LONGEST_REASON = 200


class WebProvider:
    """One session with the address in the settings. Raises UserError for files that cannot be used."""

    def __init__(self, settings: MeasurementSettings) -> None:
        self.address = settings.address
        self._headers = {"User-Agent": USER_AGENT, **settings.headers}
        self._tls = _context(settings)
        self._token = TokenFile(Path(settings.token_file)) if settings.token_file else None
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def get(self, path: str, params: Mapping[str, str] | None = None) -> tuple[int, bytes]:
        """Status and body of the answer. Raises ProviderFailed if there is none."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(ssl=self._tls), timeout=aiohttp.ClientTimeout(total=TIMEOUT)
            )
        url = self.address + path
        for attempt in (1, 2):
            headers = dict(self._headers)
            if self._token is not None:
                headers["Authorization"] = await self._token.authorization() or ""
            try:
                async with self._session.get(
                    url, params=params, headers=headers, allow_redirects=False
                ) as response:
                    if response.status == 401 and self._token is not None and attempt == 1:
                        # A token that has just been replaced.
                        self._token.invalidate()
                        continue
                    if 300 <= response.status < 400:
                        there = response.headers.get("Location", "nowhere")
                        raise ProviderFailed(f"{url} sends us to {there}: give that address if it is right")
                    return response.status, await _body(response, url)
            except TimeoutError as error:
                raise ProviderFailed(f"{url}: no answer within {TIMEOUT:g}s") from error
            except (aiohttp.ClientError, OSError, ValueError) as error:
                raise ProviderFailed(f"{url}: {one_line(str(error)) or type(error).__name__}") from error
        raise AssertionError("the second attempt answers or raises")


async def _body(response: aiohttp.ClientResponse, url: str) -> bytes:
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > _MAX_ANSWER:
            raise ProviderFailed(f"{url}: the answer is longer than {_MAX_ANSWER >> 20} MiB")
    return bytes(body)


def one_line(text: str) -> str:
    """What a stranger's program says about what went wrong."""
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_REASON else f"{line[:_LONGEST_REASON]}…"


def _context(settings: MeasurementSettings) -> ssl.SSLContext:
    try:
        authority = Path(settings.ca_file).read_bytes() if settings.ca_file else None
        return trust(authority, verify=not settings.insecure_skip_verify)
    except Unusable as error:
        raise UserError(f"measurements: the certificate {settings.ca_file} {error}") from error
    except OSError as error:
        raise UserError(f"measurements: cannot read {settings.ca_file}: {error.strerror}") from error
