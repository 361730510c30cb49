"""Our credentials for the API server, as the value of the Authorization header.

It is needed before every request, so it is cached. Credentials may be used from several threads, because the
lease is renewed by a separate client in its own thread.
"""

import base64
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from longshore.errors import UserError

# The kubelet renews a token after 80 % of its lifetime of at least 10 minutes, so there is time to read the
# new one.
TOKEN_FILE_AGE = 10.0


class Credentials(Protocol):
    async def authorization(self) -> str | None:
        """Return the value of the Authorization header, or None if there is none to send."""

    def invalidate(self) -> None:
        """Fetch the credentials again next time, because the server rejected them."""


class Fixed:
    """A header that never changes, or none."""

    def __init__(self, header: str | None) -> None:
        self._header = header

    async def authorization(self) -> str | None:
        return self._header

    def invalidate(self) -> None:
        """Do nothing: there are no other credentials."""


def bearer(token: str) -> str:
    return f"Bearer {token}"


def basic(username: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{username}:{password}".encode()).decode()


class TokenFile:
    """A token in a file that another program keeps up to date."""

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._clock = clock
        self._header: str | None = None
        self._read_again = 0.0
        self._refresh()

    async def authorization(self) -> str | None:
        if self._clock() >= self._read_again:
            self._refresh()
        return self._header

    def invalidate(self) -> None:
        self._read_again = 0.0

    def _refresh(self) -> None:
        """Read the file. If that fails, keep the previous token, which may still be valid."""
        try:
            token = self._path.read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            if self._header is None:
                reason = getattr(error, "strerror", None) or "not text"
                raise UserError(f"cannot read the token file {self._path}: {reason}") from error
        else:
            if token:
                self._header = bearer(token)
            elif self._header is None:
                raise UserError(f"the token file {self._path} is empty: put a token into it")
        self._read_again = self._clock() + TOKEN_FILE_AGE
