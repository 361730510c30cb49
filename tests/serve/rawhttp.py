"""Requests to an extender as bytes, and the answers to them."""

import json
import socket

from tests.serve.extendernodes import FILTER, WEB
from tests.serve.extenders import LOOPBACK, about_names

BODY = json.dumps(about_names(WEB, ["calm"])).encode()
HEAD = f"POST /scheduler/{FILTER} HTTP/1.1\r\nHost: x\r\n".encode()


def whole(body: bytes, *, more: bytes = b"") -> bytes:
    """Return a request to the filter verb. `more` has additional header lines."""
    return HEAD + more + b"Content-Length: %d\r\n\r\n" % len(body) + body


WHOLE = whole(BODY)


def exchange(port: int, *parts: bytes, answers: int = 1) -> list[tuple[int, bytes]]:
    """Return the answer to these chunks of bytes, sent one after the other on one connection."""
    found = []
    with socket.create_connection((LOOPBACK, port), timeout=10) as connection:
        for part in parts:
            connection.sendall(part)
        with connection.makefile("rb") as stream:
            for _ in range(answers):
                status = int(stream.readline().split()[1])
                length = 0
                while line := stream.readline().strip():
                    name, _, value = line.partition(b":")
                    length = int(value) if name.lower() == b"content-length" else length
                found.append((status, stream.read(length)))
    return found


def names(body: bytes) -> list[str]:
    found: list[str] = json.loads(body)["NodeNames"]
    return found
