"""An extender that serves over TLS: which clients it accepts, and how it follows renewed certificates."""

import http.client
import json
import shutil
import socket
import ssl
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from tests.serve.extendernodes import FILTER
from tests.serve.extenders import LOOPBACK, Made, on_a_port
from tests.serve.rawhttp import BODY, names

from longshore.dev.certificates import Authority
from longshore.errors import UserError
from longshore.serve.extender.routes import NO_CERTIFICATE
from longshore.serve.extender.tls import Certificates
from longshore.serve.tls_files import TLSFiles

# The alert, unless the connection ends before the client reads it.
REFUSED = "unknown ca|reset|closed|Broken pipe|EOF"
METRICS = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"


def authority(folder: Path) -> Authority:
    folder.mkdir()
    return Authority(folder)


@pytest.fixture
def ours(tmp_path: Path) -> Authority:
    return authority(tmp_path / "ours")


@pytest.fixture
def callers(ours: Authority, tmp_path: Path) -> Path:
    """The file with the CAs of accepted clients, which changes."""
    return Path(shutil.copy(ours.file, tmp_path / "callers.crt"))


@pytest.fixture
def theirs(tmp_path: Path) -> Authority:
    """Another CA with the same name."""
    return authority(tmp_path / "theirs")


def certificates(authority: Authority, *, client_ca: Path | None = None) -> Certificates:
    pair = authority.server("extender", hosts=["localhost"], addresses=[LOOPBACK])
    return Certificates(TLSFiles(pair.public, pair.private, client_ca))


def without(authority: Authority) -> ssl.SSLContext:
    """A client that trusts this CA and shows no certificate."""
    return ssl.create_default_context(cafile=authority.file)


def shown_by(signer: Authority, *, trusting: Authority | None = None) -> ssl.SSLContext:
    """A client with a certificate of this CA. It also trusts this CA unless another one is given."""
    caller, pair = without(trusting or signer), signer.client("scheduler", user="scheduler")
    caller.load_cert_chain(pair.public, pair.private)
    return caller


def ask(
    port: int, caller: ssl.SSLContext, path: str = "/metrics", body: bytes | None = None
) -> tuple[int, bytes]:
    connection = http.client.HTTPSConnection(LOOPBACK, port, timeout=10, context=caller)
    try:
        connection.request("GET" if body is None else "POST", path, body)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


@contextmanager
def connected(
    port: int, caller: ssl.SSLContext, session: ssl.SSLSession | None = None
) -> Iterator[ssl.SSLSocket]:
    with (
        socket.create_connection((LOOPBACK, port), timeout=10) as connection,
        caller.wrap_socket(connection, server_hostname="localhost", session=session) as wrapped,
    ):
        yield wrapped


def session_of(
    port: int, caller: ssl.SSLContext, before: ssl.SSLSession | None = None
) -> ssl.SSLSession | None:
    """Return the TLS session of an answered request, None if it was refused. `before` is resumed if given."""
    try:
        with connected(port, caller, before) as connection:
            connection.sendall(METRICS)
            heard = connection.recv(2**20).startswith(b"HTTP/1.1 200")
            assert connection.session_reused == (before is not None) or not heard
            return connection.session if heard else None
    except OSError:
        return None


def test_a_caller_is_answered_over_tls(safe: Made, ours: Authority) -> None:
    with on_a_port(safe.extender, certificates=certificates(ours)) as port:
        assert ask(port, without(ours))[0] == 200


def test_clients_with_a_certificate_are_accepted(safe: Made, ours: Authority) -> None:
    with on_a_port(safe.extender, certificates=certificates(ours, client_ca=ours.file)) as port:
        assert ask(port, shown_by(ours))[0] == 200
        status, body = ask(port, shown_by(ours), f"/scheduler/{FILTER}", BODY)
    assert (status, names(body)) == (200, ["calm"])


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/version", "/readyz?verbose"])
def test_probes_need_no_certificate(safe: Made, ours: Authority, path: str) -> None:
    with on_a_port(safe.extender, certificates=certificates(ours, client_ca=ours.file)) as port:
        assert ask(port, without(ours), path)[0] == 200


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/metrics", None),
        (f"/scheduler/{FILTER}", BODY),
        ("/scheduler/bind", b"{}"),
        ("/healthz/../metrics", None),
        ("http://localhost/metrics", None),
        ("/nothing", None),
    ],
)
def test_other_paths_require_a_certificate(
    safe: Made, ours: Authority, path: str, body: bytes | None
) -> None:
    with on_a_port(safe.extender, certificates=certificates(ours, client_ca=ours.file)) as port:
        status, said = ask(port, without(ours), path, body)
    assert (status, json.loads(said)) == (401, {"Error": NO_CERTIFICATE})


def test_a_connection_without_a_certificate_stays(safe: Made, ours: Authority) -> None:
    with on_a_port(safe.extender, certificates=certificates(ours, client_ca=ours.file)) as port:
        connection = http.client.HTTPSConnection(LOOPBACK, port, timeout=10, context=without(ours))
        for path, status in (("/metrics", 401), ("/healthz", 200), ("/metrics", 401)):
            connection.request("GET", path)
            answer = connection.getresponse()
            answer.read()
            assert (answer.status, connection.sock is None) == (status, False)
        connection.close()


def test_bodies_without_a_certificate_are_not_buffered(safe: Made, ours: Authority) -> None:
    body = b" " * (16 * 2**20)
    with on_a_port(safe.extender, certificates=certificates(ours, client_ca=ours.file)) as port:
        tracemalloc.start()
        try:
            assert ask(port, without(ours), f"/scheduler/{FILTER}", body)[0] == 401
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak < len(body)


def test_a_certificate_of_another_authority_ends_the_handshake(
    safe: Made, ours: Authority, theirs: Authority
) -> None:
    with on_a_port(safe.extender, certificates=certificates(ours, client_ca=ours.file)) as port:
        for path in ("/metrics", "/healthz"):
            with pytest.raises(OSError, match=REFUSED):
                ask(port, shown_by(theirs, trusting=ours), path)


def test_a_renewed_certificate_is_taken_up(safe: Made, ours: Authority, theirs: Authority) -> None:
    serving = certificates(ours)
    with on_a_port(safe.extender, certificates=serving) as port:
        new = theirs.server("extender", hosts=["localhost"], addresses=[LOOPBACK])
        old = ours.file.parent
        for path in (new.public, new.private):
            shutil.copy(path, old / path.name)
        serving.renew()
        assert ask(port, without(theirs))[0] == 200


def test_an_unusable_renewed_certificate_is_ignored(safe: Made, ours: Authority) -> None:
    serving = certificates(ours)
    with on_a_port(safe.extender, certificates=serving) as port:
        (ours.file.parent / "extender.crt").write_text("half of a fi")
        serving.renew()
        assert ask(port, without(ours))[0] == 200


@pytest.mark.parametrize("spoken", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_an_authority_that_is_taken_out_is_trusted_no_longer(
    safe: Made, ours: Authority, theirs: Authority, callers: Path, spoken: ssl.TLSVersion
) -> None:
    serving = certificates(ours, client_ca=callers)
    before, after = shown_by(ours), shown_by(theirs, trusting=ours)
    before.maximum_version = spoken
    with on_a_port(safe.extender, certificates=serving) as port:
        session = session_of(port, before)
        assert session_of(port, before, session), "sessions are resumed"
        callers.write_bytes(theirs.file.read_bytes())
        serving.renew()
        assert session_of(port, after)
        assert session_of(port, before) is None
        assert session_of(port, before, session) is None


def test_a_second_ca_in_the_file_is_trusted_too(
    safe: Made, ours: Authority, theirs: Authority, callers: Path
) -> None:
    serving = certificates(ours, client_ca=callers)
    with on_a_port(safe.extender, certificates=serving) as port:
        callers.write_bytes(ours.file.read_bytes() + theirs.file.read_bytes())
        serving.renew()
        assert ask(port, shown_by(ours))[0] == ask(port, shown_by(theirs, trusting=ours))[0] == 200


def test_an_unreadable_ca_file_changes_nothing(safe: Made, ours: Authority, callers: Path) -> None:
    serving = certificates(ours, client_ca=callers)
    with on_a_port(safe.extender, certificates=serving) as port:
        callers.write_text("half of a fi")
        serving.renew()
        assert ask(port, shown_by(ours))[0] == 200


def test_an_idle_connection_is_closed_after_a_renewal(
    safe: Made, ours: Authority, theirs: Authority, callers: Path
) -> None:
    serving = certificates(ours, client_ca=callers)
    with (
        on_a_port(safe.extender, certificates=serving, sweep_seconds=0.05) as port,
        connected(port, shown_by(ours)) as idle,
    ):
        idle.sendall(METRICS)
        assert idle.recv(2**20).startswith(b"HTTP/1.1 200")
        callers.write_bytes(theirs.file.read_bytes())
        while idle.recv(2**20):
            pass


def test_a_request_during_a_renewal_is_the_last_of_its_connection(
    safe: Made, ours: Authority, theirs: Authority, callers: Path
) -> None:
    serving = certificates(ours, client_ca=callers)
    with (
        on_a_port(safe.extender, certificates=serving) as port,
        connected(port, shown_by(ours)) as under_way,
    ):
        under_way.sendall(
            f"POST /scheduler/{FILTER} HTTP/1.1\r\nHost: x\r\n"
            f"Expect: 100-continue\r\nContent-Length: {len(BODY)}\r\n\r\n".encode()
        )
        # The server has accepted the caller and read the head: a client's handshake ends before the server's.
        assert under_way.recv(2**16) == b"HTTP/1.1 100 Continue\r\n\r\n"
        callers.write_bytes(theirs.file.read_bytes())
        serving.renew()
        under_way.sendall(BODY)
        answer = b"".join(iter(lambda: under_way.recv(2**16), b""))
    assert answer.startswith(b"HTTP/1.1 200")
    assert b"\r\nConnection: close\r\n" in answer


def test_a_handshake_that_began_before_a_renewal_leads_nowhere(
    safe: Made, ours: Authority, theirs: Authority, callers: Path
) -> None:
    serving = certificates(ours, client_ca=callers)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    caller = shown_by(ours).wrap_bio(incoming, outgoing, server_hostname="localhost")
    with (
        on_a_port(safe.extender, certificates=serving) as port,
        socket.create_connection((LOOPBACK, port), timeout=10) as connection,
    ):
        with pytest.raises(ssl.SSLWantReadError):
            caller.do_handshake()
        connection.sendall(outgoing.read())
        incoming.write(connection.recv(2**16))
        callers.write_bytes(theirs.file.read_bytes())
        serving.renew()
        caller.do_handshake()
        caller.write(METRICS)
        connection.sendall(outgoing.read())
        answer = None
        while answer is None:
            incoming.write(connection.recv(2**16))
            with suppress(ssl.SSLWantReadError):
                answer = caller.read()
    assert answer == b""


def test_an_authority_may_be_told_about_in_any_language(safe: Made, ours: Authority) -> None:
    described = "# Autorité\n".encode("latin-1") + ours.file.read_bytes()
    ours.file.with_name("described.crt").write_bytes(described)
    serving = certificates(ours, client_ca=ours.file.with_name("described.crt"))
    with on_a_port(safe.extender, certificates=serving) as port:
        assert ask(port, shown_by(ours))[0] == 200


def test_a_ca_file_without_a_certificate_is_one_line(ours: Authority, tmp_path: Path) -> None:
    wrong = tmp_path / "ca.crt"
    wrong.write_text("no certificate")
    with pytest.raises(UserError, match=f"cannot verify clients: {wrong}"):
        certificates(ours, client_ca=wrong)
