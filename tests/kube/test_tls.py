"""Certificates: unusable ones are reported, and valid ones are presented and verified."""

import asyncio
import base64
import contextlib
import ssl
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from hypothesis import given
from hypothesis import strategies as st
from tests.kube import pki
from tests.kube.kubeconfigs import b64, document, problem, write

from longshore.kube import tls
from longshore.kube.config import Connection, load

DAY = timedelta(days=1)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config.yaml"


class TestCertificates:
    def certificate_problem(self, file: Path, *, certificate: bytes, key: bytes) -> str:
        user = {"client-certificate-data": b64(certificate), "client-key-data": b64(key)}
        text = problem(write(file, document(user=user)))
        start = f'{file}: user "docker": client-certificate '
        assert text.startswith(start)
        return text.removeprefix(start)

    def test_an_expired_certificate_is_reported(self, file: Path) -> None:
        old = pki.issue(starts=-2 * DAY, ends=-DAY)
        yesterday = datetime.now(UTC) - DAY
        text = self.certificate_problem(file, certificate=old.certificate, key=old.key)
        assert text == f"expired on {yesterday:%Y-%m-%d %H:%M} UTC: renew it"

    def test_a_certificate_that_is_not_valid_yet_is_reported(self, file: Path) -> None:
        early = pki.issue(starts=DAY, ends=2 * DAY)
        text = self.certificate_problem(file, certificate=early.certificate, key=early.key)
        assert text.startswith("is valid only from ")
        assert text.endswith("check the clock of this machine")

    def test_a_certificate_of_another_key_is_reported(self, file: Path) -> None:
        text = self.certificate_problem(file, certificate=pki.client().certificate, key=pki.server().key)
        assert text == "does not belong to the client key: give the two issued together"

    def test_a_malformed_key_is_reported(self, file: Path) -> None:
        text = self.certificate_problem(file, certificate=pki.client().certificate, key=b"nonsense")
        assert text == "comes with a client key that is not a private key in PEM format"

    def test_an_encrypted_key_is_reported(self, file: Path) -> None:
        key = pki.encrypted(pki.client().key)
        text = self.certificate_problem(file, certificate=pki.client().certificate, key=key)
        assert text == "comes with a client key that is encrypted: give it without a password"

    @pytest.mark.parametrize("keep", [0, 1, 5, 60, 200])
    def test_a_truncated_certificate_is_reported(self, file: Path, keep: int) -> None:
        der = ssl.PEM_cert_to_DER_cert(pki.client().certificate.decode())
        pem = ssl.DER_cert_to_PEM_cert(der[:keep]).encode()
        assert "PEM" in self.certificate_problem(file, certificate=pem, key=pki.client().key)

    def test_an_expired_authority_is_reported(self, file: Path) -> None:
        old = pki.issue(authority=True, starts=-2 * DAY, ends=-DAY)
        text = problem(write(file, document(cluster={"certificate-authority-data": b64(old.certificate)})))
        assert text.startswith(f'{file}: cluster "harbour": certificate-authority expired on ')

    def test_a_bundle_with_an_expired_and_a_valid_authority_is_accepted(self, file: Path) -> None:
        old = pki.issue(authority=True, starts=-2 * DAY, ends=-DAY)
        bundle = "# übergangsweise\n".encode() + old.certificate + pki.authority().certificate
        connection = load(write(file, document(cluster={"certificate-authority-data": b64(bundle)})))
        assert connection.ssl is not None
        assert len(connection.ssl.get_ca_certs()) == 2

    def test_base64_may_be_split_into_lines(self, file: Path) -> None:
        data = base64.encodebytes(pki.authority().certificate).decode()
        assert load(write(file, document(cluster={"certificate-authority-data": data}))).ssl is not None

    @given(
        first=st.datetimes(datetime(1950, 1, 1), datetime(2100, 1, 1)),
        length=st.timedeltas(timedelta(seconds=1), timedelta(days=300_000)),
    )
    def test_dates_are_those_that_cryptography_reads(self, first: datetime, length: timedelta) -> None:
        now = datetime.now(UTC)
        start = first.replace(tzinfo=UTC, microsecond=0)
        made = pki.issue(starts=start - now, ends=start + length - now)
        expected = x509.load_pem_x509_certificate(made.certificate)
        dates = tls.validity(ssl.PEM_cert_to_DER_cert(made.certificate.decode()))
        assert dates == (expected.not_valid_before_utc, expected.not_valid_after_utc)

    @given(st.binary(max_size=64))
    def test_random_bytes_are_rejected_without_other_errors(self, noise: bytes) -> None:
        with pytest.raises(tls.Unusable):
            tls.validity(b"\x30" + noise)


class TestHandshake:
    """Handshakes with a real TLS server on localhost that requests a client certificate."""

    @contextlib.asynccontextmanager
    async def server(self, tmp_path: Path) -> AsyncIterator[int]:
        """A server that responds with the common name of its client."""
        (tmp_path / "server.pem").write_bytes(pki.server().key + pki.server().certificate)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tmp_path / "server.pem")
        context.load_verify_locations(cadata=pki.authority().certificate.decode())
        context.verify_mode = ssl.CERT_OPTIONAL

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            shown = writer.get_extra_info("peercert")
            name = (
                next((value for pairs in shown["subject"] for _, value in pairs), "") if shown else "nobody"
            )
            writer.write(name.encode() + b"\n")
            await writer.drain()
            writer.close()

        listening = await asyncio.start_server(answer, "localhost", 0, ssl=context)
        async with listening:
            yield listening.sockets[0].getsockname()[1]

    async def greet(self, connection: Connection, port: int) -> str:
        reader, writer = await asyncio.open_connection(
            "localhost", port, ssl=connection.ssl, server_hostname=connection.server_hostname
        )
        try:
            return (await reader.readline()).decode().strip()
        finally:
            writer.close()
            with contextlib.suppress(ssl.SSLError, ConnectionError):
                await writer.wait_closed()

    async def test_the_given_authority_is_trusted_and_the_certificate_presented(
        self, tmp_path: Path, file: Path
    ) -> None:
        user = {
            "client-certificate-data": b64(pki.client().certificate),
            "client-key-data": b64(pki.client().key),
        }
        cluster = {"certificate-authority-data": b64(pki.authority().certificate)}
        connection = load(write(file, document(cluster=cluster, user=user)))
        async with self.server(tmp_path) as port:
            assert await self.greet(connection, port) == "a client"

    async def test_the_certificate_and_the_key_are_read_from_files(self, tmp_path: Path, file: Path) -> None:
        (tmp_path / "tls.crt").write_bytes(pki.client().certificate)
        (tmp_path / "tls.key").write_bytes(pki.client().key)
        user = {"client-certificate": "tls.crt", "client-key": "tls.key"}
        cluster = {"certificate-authority-data": b64(pki.authority().certificate)}
        connection = load(write(file, document(cluster=cluster, user=user)))
        async with self.server(tmp_path) as port:
            assert await self.greet(connection, port) == "a client"

    @pytest.mark.parametrize("authority", [None, pki.issue("another", authority=True).certificate])
    async def test_a_server_of_another_authority_is_rejected(
        self, tmp_path: Path, file: Path, authority: bytes | None
    ) -> None:
        cluster = {"certificate-authority-data": b64(authority)} if authority else {}
        connection = load(write(file, document(cluster=cluster)))
        async with self.server(tmp_path) as port:
            with pytest.raises(ssl.SSLCertVerificationError):
                await self.greet(connection, port)

    async def test_a_server_with_another_name_is_rejected(self, tmp_path: Path, file: Path) -> None:
        cluster = {
            "certificate-authority-data": b64(pki.authority().certificate),
            "tls-server-name": "elsewhere",
        }
        connection = load(write(file, document(cluster=cluster)))
        async with self.server(tmp_path) as port:
            with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
                await self.greet(connection, port)

    async def test_nothing_is_verified_if_so_configured(self, tmp_path: Path, file: Path) -> None:
        connection = load(write(file, document(cluster={"insecure-skip-tls-verify": True})))
        async with self.server(tmp_path) as port:
            assert await self.greet(connection, port) == "nobody"

    def test_the_private_key_is_never_written_to_disk(
        self, file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        seen: list[str] = []
        load_cert_chain = ssl.SSLContext.load_cert_chain

        def watched(self: ssl.SSLContext, path: str, **options: Any) -> None:
            seen.append(str(Path(path).readlink()))
            load_cert_chain(self, path, **options)

        monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", watched)
        open_before = set(Path("/proc/self/fd").iterdir())
        user = {
            "client-certificate-data": b64(pki.client().certificate),
            "client-key-data": b64(pki.client().key),
        }
        load(write(file, document(user=user)))
        assert [name.partition(":")[0] for name in seen] == ["/memfd"]
        assert set(Path("/proc/self/fd").iterdir()) == open_before
