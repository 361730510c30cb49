"""A certificate authority for each cluster, which signs one server certificate and several client ones.

All keys are P-256: they are generated in a millisecond, and accepted everywhere in Kubernetes, including the
key that signs service account tokens. All files are in the cluster's folder, and are deleted with it.
"""

import ipaddress
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from longshore.dev.keys import Pair

_VALIDITY = timedelta(days=365)
_CLOCK_SKEW = timedelta(hours=1)


class Authority:
    """Signs the certificates of one cluster and writes them to its folder. Only the owner can read them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = _new_key()
        self._name = _name("longshore-dev-ca")
        self.file = folder / "ca.crt"
        certificate = self._certificate(self._name, self._key).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        self.file.write_bytes(
            self._sign(certificate.add_extension(_key_usage(authority=True), critical=True))
        )

    def server(self, name: str, *, hosts: list[str], addresses: list[str]) -> Pair:
        """Write a server certificate for these host names and addresses."""
        names: list[x509.GeneralName] = [x509.DNSName(host) for host in hosts]
        names += [x509.IPAddress(ipaddress.ip_address(address)) for address in addresses]
        key = _new_key()
        certificate = (
            self._certificate(_name(name), key)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        )
        return self._write(name, certificate, key)

    def client(self, name: str, *, user: str, group: str | None = None) -> Pair:
        """Write a client certificate by which the API server recognizes this user and group."""
        key = _new_key()
        certificate = self._certificate(_name(user, group), key).add_extension(
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False
        )
        return self._write(name, certificate, key)

    def signing_key(self, name: str) -> Pair:
        """Write a key pair that signs service account tokens, without a certificate."""
        key = _new_key()
        pair = Pair(self._folder / f"{name}.pub", self._folder / f"{name}.key")
        pair.public.write_bytes(
            key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        )
        _write_private(pair.private, key)
        return pair

    def _certificate(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _CLOCK_SKEW)
            .not_valid_after(now + _VALIDITY)
            # Python 3.13 and later rejects certificates without these two.
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False
            )
        )

    def _write(
        self, name: str, certificate: x509.CertificateBuilder, key: ec.EllipticCurvePrivateKey
    ) -> Pair:
        pair = Pair(self._folder / f"{name}.crt", self._folder / f"{name}.key")
        leaf = certificate.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        pair.public.write_bytes(self._sign(leaf.add_extension(_key_usage(authority=False), critical=True)))
        _write_private(pair.private, key)
        return pair

    def _sign(self, certificate: x509.CertificateBuilder) -> bytes:
        return certificate.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM)


def _new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def _name(common: str, organization: str | None = None) -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.COMMON_NAME, common)]
    if organization is not None:
        attributes.insert(0, x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization))
    return x509.Name(attributes)


def _key_usage(*, authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=authority,
        crl_sign=authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _write_private(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    # SEC 1, because every version of Go reads an EC key for tokens in this form.
    content = key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(content)
