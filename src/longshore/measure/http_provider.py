"""The HTTP client of providers, with TLS, tokens and errors of one line."""

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

# The answer about 5,000 nodes is a hundredth of this.
_MAX_ANSWER = 256 * 2**20
_LONGEST_REASON = 200


class HttpClient:
    """A client for the address in the settings. Raises UserError if a file in them cannot be used."""

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
        """Return the status and body of the answer. Raises ProviderFailed if there is no answer."""
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
                        # The token may have been replaced meanwhile.
                        self._token.invalidate()
                        continue
                    if 300 <= response.status < 400:
                        there = response.headers.get("Location", "an unknown address")
                        raise ProviderFailed(f"{url} redirects to {there}: use that address if it is correct")
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
    """Return a message from another program as one line, cut if it is long."""
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_REASON else f"{line[:_LONGEST_REASON]}…"


def _context(settings: MeasurementSettings) -> ssl.SSLContext:
    try:
        authority = Path(settings.ca_file).read_bytes() if settings.ca_file else None
        return trust(authority, verify=not settings.insecure_skip_verify)
    except Unusable as error:
        raise UserError(f"measurements: the CA certificate {settings.ca_file} {error}") from error
    except OSError as error:
        raise UserError(f"measurements: cannot read {settings.ca_file}: {error.strerror}") from error
