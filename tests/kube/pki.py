"""Certificates for tests: valid, expired, or otherwise invalid ones."""

import functools
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Issued:
    """A certificate and its key, in PEM."""

    certificate: bytes
    key: bytes


def issue(
    name: str = "someone",
    *,
    issuer: Issued | None = None,
    starts: timedelta = timedelta(days=-1),
    ends: timedelta = timedelta(days=1),
    authority: bool = False,
) -> Issued:
    """A new certificate, self-signed unless an issuer is given."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    signer, signed_by = key, subject
    if issuer is not None:
        loaded = serialization.load_pem_private_key(issuer.key, None)
        assert isinstance(loaded, ec.EllipticCurvePrivateKey)
        signer, signed_by = loaded, x509.load_pem_x509_certificate(issuer.certificate).subject
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(signed_by)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + starts)
        .not_valid_after(now + ends)
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(signer, hashes.SHA256())
    )
    return Issued(
        certificate.public_bytes(serialization.Encoding.PEM),
        key_pem(key, serialization.NoEncryption()),
    )


def key_pem(key: ec.EllipticCurvePrivateKey, encryption: serialization.KeySerializationEncryption) -> bytes:
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)


def encrypted(key: bytes) -> bytes:
    loaded = serialization.load_pem_private_key(key, None)
    assert isinstance(loaded, ec.EllipticCurvePrivateKey)
    return key_pem(loaded, serialization.BestAvailableEncryption(b"secret"))


@functools.cache
def authority() -> Issued:
    return issue("an authority", authority=True)


@functools.cache
def client() -> Issued:
    return issue("a client", issuer=authority())


@functools.cache
def server() -> Issued:
    return issue("a server", issuer=authority())
