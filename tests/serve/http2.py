"""The part of HTTP/2 that one gRPC call needs, by hand, so that client and server share no code."""

import struct

_DATA, _HEADERS, _SETTINGS = 0x0, 0x1, 0x4
_END_STREAM, _END_HEADERS = 0x1, 0x4
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def call(path: str, message: bytes, *, timeout: str) -> bytes:
    """Return what a client sends on a new connection. `timeout` is in gRPC's syntax: 500m is 0.5 seconds."""
    headers = {
        ":method": "POST",
        ":scheme": "http",
        ":path": path,
        ":authority": "planner",
        "content-type": "application/grpc",
        "te": "trailers",
        "grpc-timeout": timeout,
    }
    return b"".join(
        (
            _PREFACE,
            _frame(_SETTINGS, 0, 0, b""),
            _frame(_HEADERS, _END_HEADERS, 1, b"".join(map(_literal, headers, headers.values()))),
            _frame(_DATA, _END_STREAM, 1, framed(message)),
        )
    )


def framed(message: bytes) -> bytes:
    """Return a message as gRPC frames it in the body: the flag for compression, the length, and the bytes."""
    return struct.pack(">BI", 0, len(message)) + message


def settings() -> bytes:
    """The first frame that a server sends."""
    return _frame(_SETTINGS, 0, 0, b"")


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3) + struct.pack(">BBI", kind, flags, stream) + payload


def _literal(name: str, value: str) -> bytes:
    """Return a header without compression."""
    return b"\0" + b"".join(bytes([len(part)]) + part.encode() for part in (name, value))
