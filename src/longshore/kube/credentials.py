"""Who we are to the API server, as the value of the Authorization header.

Asked for before every request, so what is cached is answered at once. All of them may be used from several
threads: the lease is renewed by a client of its own.
"""

import base64
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from longshore.errors import UserError

# The kubelet renews a token at 80 % of its life of at least 10 minutes: time enough to see the new one.
TOKEN_FILE_AGE = 10.0


class Credentials(Protocol):
    async def authorization(self) -> str | None:
        """The value of the Authorization header; none where a certificate or nothing identifies us."""

    def invalidate(self) -> None:
        """The server refused what we showed: fetch it anew next time."""


class Fixed:
    """The same header for ever, or none."""

    def __init__(self, header: str | None) -> None:
        self._header = header

    async def authorization(self) -> str | None:
        return self._header

    def invalidate(self) -> None:
        """There is nothing else to show."""


def bearer(token: str) -> str:
    return f"Bearer {token}"


def basic(username: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{username}:{password}".encode()).decode()


class TokenFile:
    """A token that someone else keeps fresh in a file."""

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
        """Read the file; while it cannot be read, the token from before may still be good."""
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
