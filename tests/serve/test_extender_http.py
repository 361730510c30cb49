"""The HTTP of an extender, byte by byte."""

import http.client
import json

import pytest
from tests.serve.extendernodes import FILTER
from tests.serve.extenders import LOOPBACK, Made, on_a_port, request
from tests.serve.rawhttp import BODY, HEAD, WHOLE, exchange, names
from tests.serve.wires import connected

from longshore.errors import UserError
from longshore.serve.extender.http_server import listening


def test_a_connection_is_kept_for_the_next_request(safe: Made) -> None:
    with on_a_port(safe.extender) as port:
        connection = http.client.HTTPConnection(LOOPBACK, port, timeout=10)
        for _ in range(3):
            connection.request("POST", f"/scheduler/{FILTER}", BODY)
            assert names(connection.getresponse().read()) == ["calm"]
            kept = connection.sock
            assert kept is not None
        connection.close()


def test_requests_that_do_not_wait_are_answered_in_their_order(safe: Made) -> None:
    version = b"GET /version HTTP/1.1\r\nHost: x\r\n\r\n"
    with on_a_port(safe.extender) as port:
        answers = exchange(port, WHOLE + version + WHOLE, answers=3)
    assert [status for status, _ in answers] == [200, 200, 200]
    assert names(answers[0][1]) == names(answers[2][1]) == ["calm"]


def test_a_request_that_comes_byte_by_byte(safe: Made) -> None:
    with on_a_port(safe.extender) as port:
        [(status, body)] = exchange(port, *(bytes([byte]) for byte in WHOLE))
    assert (status, names(body)) == (200, ["calm"])


def test_a_body_in_chunks(safe: Made) -> None:
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (BODY[:10], BODY[10:])) + b"0\r\n\r\n"
    with on_a_port(safe.extender) as port:
        [(status, body)] = exchange(port, HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunks)
    assert (status, names(body)) == (200, ["calm"])


def test_an_expect_continue_header_is_answered(safe: Made) -> None:
    head = HEAD + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(BODY)
    with on_a_port(safe.extender) as port:
        answers = exchange(port, head, BODY, answers=2)
    assert [status for status, _ in answers] == [100, 200]


def test_a_request_that_is_too_large(safe: Made) -> None:
    with on_a_port(safe.extender, max_body=1000) as port:
        status, body, headers = request(port, "POST", f"/scheduler/{FILTER}", b" " * 1001)
        assert (status, headers["connection"]) == (413, "close")
        assert "larger than 1000 bytes" in json.loads(body)["Error"]
        assert request(port, "GET", "/version")[0] == 200


def test_chunks_that_become_too_large(safe: Made) -> None:
    chunks = b"258\r\n" + b" " * 600 + b"\r\n"
    with on_a_port(safe.extender, max_body=1000) as port:
        [(status, _)] = exchange(
            port, HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunks * 2 + b"0\r\n\r\n"
        )
    assert status == 413


def test_a_head_without_end(safe: Made) -> None:
    with on_a_port(safe.extender) as port:
        [(status, _)] = exchange(port, HEAD + b"X: y\r\n" * 20_000)
    assert status == 431


async def test_endless_trailers_are_rejected(safe: Made) -> None:
    connection = connected(safe)
    connection.data_received(HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX: ")
    for _ in range(2):
        connection.data_received(b"a" * 2**16)
    assert (connection.wire.statuses, connection.wire.closing) == ([431], True)


def test_a_content_length_trailer_is_rejected(safe: Made) -> None:
    chunks = b"258\r\n" + b" " * 600 + b"\r\n"
    trailer = b"0\r\nContent-Length: 1\r\n\r\n"
    with on_a_port(safe.extender, max_body=1000) as port:
        [(status, _)] = exchange(port, HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunks * 2 + trailer)
    assert status == 400


def test_small_chunks_of_a_large_body_are_no_head(safe: Made) -> None:
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in BODY + b" " * 2**15)
    with on_a_port(safe.extender) as port:
        [(status, body)] = exchange(
            port, HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n"
        )
    assert (status, names(body)) == (200, ["calm"])


@pytest.mark.parametrize("said", [b"hello\r\n\r\n", b"\x16\x03\x01\x02\x00\x01", b"GET / HTTP/9.9\r\n\r\n"])
def test_bytes_that_are_not_http(safe: Made, said: bytes) -> None:
    with on_a_port(safe.extender) as port:
        assert [status for status, _ in exchange(port, said)] == [400]
        assert request(port, "GET", "/version")[0] == 200


def test_a_head_request_gets_no_body(safe: Made) -> None:
    with on_a_port(safe.extender) as port:
        status, body, headers = request(port, "HEAD", "/version")
    assert (status, body, headers["content-length"]) == (200, b"", "5")


async def test_a_port_in_use_is_one_clear_line(safe: Made) -> None:
    words = "Address already in use; choose another with --port or HTTP_PORT"
    with on_a_port(safe.extender) as port, pytest.raises(UserError, match=words):
        async with listening(safe.extender.answer, port=port, address=LOOPBACK):
            pass
