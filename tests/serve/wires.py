"""Connections to an extender without sockets: tests feed them bytes piece by piece."""

import asyncio
from typing import Any

from tests.serve.extenders import Made

from longshore.serve.extender import http_server
from longshore.serve.extender.http_server import MAX_BODY


class Wire(asyncio.Transport):
    """Records whether the server reads, and the answers that it sent."""

    def __init__(self) -> None:
        super().__init__()
        self.reading = True
        self.closing = False
        self.statuses: list[int] = []

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def is_closing(self) -> bool:
        return self.closing

    def close(self) -> None:
        self.closing = True

    def write(self, data: Any) -> None:
        self.statuses.append(int(data.split()[1]))


class Connection(http_server.ExtenderConnection):
    wire: Wire


def connected(safe: Made, *, early_seconds: float = 0.1) -> Connection:
    connection = Connection(safe.extender.answer, set(), MAX_BODY, early_seconds=early_seconds)
    connection.wire = Wire()
    connection.connection_made(connection.wire)
    return connection
