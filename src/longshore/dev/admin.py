"""A small blocking client for the API server, to wait until a cluster is ready and to set it up.

It does not use `longshore.kube` on purpose: the client under test must not prepare its own tests. It works in
plain functions, in threads, and in running event loops.
"""

import http.client
import json
import ssl
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from longshore.dev.keys import Pair

_TIMEOUT_SECONDS = 30
_PROBE_SECONDS = 3
# More connections gain nothing on the few cores of a developer's machine.
_PARALLEL_CREATES = 4


class RefusedError(Exception):
    """The API server answered a request with an error."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{message} (HTTP {status})")
        self.status = status


class Admin:
    """Sends requests as the cluster's administrator, with a client certificate."""

    def __init__(self, *, port: int, ca_file: Path, client: Pair) -> None:
        self._port = port
        self._tls = ssl.create_default_context(cafile=str(ca_file))
        self._tls.load_cert_chain(client.public, client.private)

    def ready(self) -> bool:
        """Whether the API server is ready; False while it cannot be reached."""
        try:
            self.request("GET", "/readyz", timeout=_PROBE_SECONDS)
        except (RefusedError, OSError, http.client.HTTPException):
            return False
        return True

    def exists(self, path: str) -> bool:
        """Whether the object at this path exists."""
        try:
            self.request("GET", path)
        except RefusedError as error:
            if error.status == 404:
                return False
            raise
        return True

    def request(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        content_type: str = "application/json",
        timeout: float = _TIMEOUT_SECONDS,
    ) -> bytes:
        """Send one request on its own connection, and return the body of the response."""
        connection = self._connect(timeout)
        try:
            return _exchange(connection, method, path, body, content_type)
        finally:
            connection.close()

    def apply(self, path: str, body: Mapping[str, Any]) -> None:
        """Create the object, or update the existing one, by server-side apply."""
        self.request(
            "PATCH",
            f"{path}?fieldManager=longshore-dev&force=true",
            body,
            content_type="application/apply-patch+yaml",
        )

    def create_all(self, path: str, bodies: Sequence[Mapping[str, Any]]) -> None:
        """Create many objects of one kind over a few connections, in no particular order."""
        parts = [bodies[start::_PARALLEL_CREATES] for start in range(_PARALLEL_CREATES)]
        with ThreadPoolExecutor(_PARALLEL_CREATES) as pool:
            list(pool.map(lambda part: self.create_in_order(path, part), [part for part in parts if part]))

    def create_in_order(self, path: str, bodies: Sequence[Mapping[str, Any]]) -> None:
        """Create objects of one kind, one after another over one connection."""
        connection = self._connect()
        try:
            for body in bodies:
                _exchange(connection, "POST", path, body, "application/json")
        finally:
            connection.close()

    def _connect(self, timeout: float = _TIMEOUT_SECONDS) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection("127.0.0.1", self._port, context=self._tls, timeout=timeout)


def _exchange(
    connection: http.client.HTTPSConnection,
    method: str,
    path: str,
    body: Mapping[str, Any] | None,
    content_type: str,
) -> bytes:
    content = None if body is None else json.dumps(body).encode()
    connection.request(
        method, path, body=content, headers={"Content-Type": content_type, "Accept": "application/json"}
    )
    response = connection.getresponse()
    answer = response.read()
    if response.status >= 300:
        raise RefusedError(response.status, _message(answer))
    return answer


def _message(answer: bytes) -> str:
    try:
        return str(json.loads(answer)["message"])
    except (ValueError, KeyError, TypeError):
        return answer.decode(errors="replace").strip()
