"""TLS for the API server: the authority that we trust, our client certificate, and checks of both.

If a client certificate has expired, the server drops the connection without giving the reason, so the dates
are checked here. OpenSSL accepts a private key only from a file, so it gets one that exists only in memory.
"""

import os
import re
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

_PEM = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
# The DER tags of the elements before and in the validity of a certificate (X.690, RFC 5280 4.1).
_VERSION = 0xA0
_UTC_TIME = 0x17  # with two digits for the year
_GENERALIZED_TIME = 0x18


class Unusable(ValueError):
    """A certificate or key cannot be used. The message continues a sentence that begins with its name."""


def trust(authority: bytes | None, *, verify: bool = True) -> ssl.SSLContext:
    """Return a context that trusts only this authority; without one, those of the system.

    Without `verify`, it trusts every server.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # An authority may be an intermediate one, as with kubectl.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif authority is None:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    else:
        certificates = _certificates(authority)
        if all(_date_problem(certificate) for certificate in certificates):
            # While an authority is being replaced, a bundle contains the old and the new one.
            raise Unusable(_date_problem(certificates[0]))
        _add(context, certificates)
    return context


def trust_also(context: ssl.SSLContext, authority: bytes) -> None:
    """Trust this authority in addition to those that are already trusted."""
    _add(context, _certificates(authority))


def identify(context: ssl.SSLContext, *, certificate: bytes, key: bytes) -> None:
    """Present this client certificate on all connections that are opened from now on."""
    certificates = _certificates(certificate)
    if problem := _date_problem(certificates[0]):
        raise Unusable(problem)
    _add(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), certificates)
    try:
        with _in_memory(key + b"\n" + certificate) as path:
            context.load_cert_chain(path, password=_refuse_password)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise Unusable("does not belong to the client key: give the two issued together") from error
        raise Unusable("comes with a client key that is not a private key in PEM format") from error


def _refuse_password() -> str:
    raise Unusable("comes with a client key that is encrypted: give it without a password")


@contextmanager
def _in_memory(content: bytes) -> Iterator[str]:
    descriptor = os.memfd_create("client-certificate", os.MFD_CLOEXEC)
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(content)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


def _add(context: ssl.SSLContext, certificates: list[bytes]) -> None:
    try:
        context.load_verify_locations(cadata=b"".join(certificates))
    except ssl.SSLError as error:
        raise Unusable("is malformed: give a certificate in PEM format") from error


def _certificates(pem: bytes) -> list[bytes]:
    """Return the certificates of a PEM text in DER."""
    try:
        found = [ssl.PEM_cert_to_DER_cert(match.decode()) for match in _PEM.findall(pem)]
    except ValueError as error:
        raise Unusable("is malformed: its PEM text is not base64") from error
    if not found:
        raise Unusable("contains no certificate: give one in PEM format")
    return found


def _date_problem(certificate: bytes) -> str | None:
    not_before, not_after = validity(certificate)
    now = datetime.now(UTC)
    if now > not_after:
        return f"expired on {not_after:%Y-%m-%d %H:%M} UTC: renew it"
    if now < not_before:
        return f"is valid only from {not_before:%Y-%m-%d %H:%M} UTC: check the clock of this machine"
    return None


def validity(certificate: bytes) -> tuple[datetime, datetime]:
    """Return the start and the end of the validity of a certificate in DER.

    The standard library gives the dates of a peer's certificate, but not of our own.
    """
    try:
        _, start, _ = _element(certificate, 0)  # Certificate
        _, start, _ = _element(certificate, start)  # tbsCertificate
        tag, _, end = _element(certificate, start)  # version, or the serial number when it is left out
        if tag == _VERSION:
            _, _, end = _element(certificate, end)  # serial number
        _, _, end = _element(certificate, end)  # signature algorithm
        _, _, end = _element(certificate, end)  # issuer
        _, start, _ = _element(certificate, end)  # validity
        first, end = _time(certificate, start)
        last, _ = _time(certificate, end)
    except (IndexError, ValueError) as error:
        raise Unusable("is malformed: give a certificate in PEM format") from error
    return first, last


def _time(data: bytes, at: int) -> tuple[datetime, int]:
    tag, start, end = _element(data, at)
    text = data[start:end].decode()
    if tag == _UTC_TIME:
        text = ("19" if text >= "50" else "20") + text
    elif tag != _GENERALIZED_TIME:
        raise ValueError("not a time")
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC), end


def _element(data: bytes, at: int) -> tuple[int, int, int]:
    """Return the tag, and the start and end of the content, of the DER element at this position."""
    tag, length, start = data[at], data[at + 1], at + 2
    if length & 0x80:  # the length itself takes this many bytes
        width = length & 0x7F
        length, start = int.from_bytes(data[start : start + width]), start + width
    if start + length > len(data):
        raise IndexError("an element longer than what holds it")
    return tag, start, start + length
