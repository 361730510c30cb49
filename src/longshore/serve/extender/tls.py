"""The certificates of an extender that serves by TLS, as renewed in their files while it runs.

What cannot be used is told at the start; later what worked so far stays in use. Of the authorities of callers
those count that are in the file when a connection begins.
"""

import ssl
from pathlib import Path

import msgspec
import structlog

from longshore.errors import UserError
from longshore.kube.tls import Unusable, trust, trust_also
from longshore.serve.server import tls_from

log = structlog.get_logger()


class TLSFiles(msgspec.Struct, frozen=True):
    """In PEM format. With `client_ca` callers are known by a certificate of that authority."""

    certificate: Path
    key: Path
    client_ca: Path | None = None


class _Renewed(ssl.SSLContext):
    """Stands for the context in use, which each new connection gets.

    A context cannot forget an authority, and sessions that it has told of are resumed without verification:
    what changes is a new one, which knows of neither.
    """

    in_use: ssl.SSLContext

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        return self.in_use.wrap_bio(incoming, outgoing, server_side, server_hostname, session)


class Certificates:
    """Raises UserError if the files cannot be used."""

    def __init__(self, files: TLSFiles) -> None:
        self._files = files
        self._content = _content(files)
        self.context = _Renewed(ssl.PROTOCOL_TLS_SERVER)
        self.context.in_use = _context(files, self._content)

    def knows(self, caller: ssl.SSLObject) -> bool:
        """Whether it showed a certificate, if callers have to. The handshake has verified it."""
        return self._files.client_ca is None or caller.getpeercert(binary_form=True) is not None

    def uses(self, context: ssl.SSLContext | None) -> bool:
        """Whether nothing was renewed since it came into use."""
        return context is self.context.in_use

    def renew(self) -> None:
        """Take up what has changed in the files, if it can be used."""
        try:
            content = _content(self._files)
            if content == self._content:
                return
            self.context.in_use = _context(self._files, content)
            self._content = content
            log.info("the certificate was renewed", file=str(self._files.certificate))
        except (UserError, OSError) as error:
            log.warning("the new certificate is not taken", reason=str(error))


class _Content(msgspec.Struct, frozen=True):
    certificate: bytes
    key: bytes
    client_ca: bytes | None


def _context(files: TLSFiles, content: _Content) -> ssl.SSLContext:
    context = tls_from(str(files.certificate), str(files.key))
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if content.client_ca is not None:
        # A certificate of another authority ends the handshake; kubelet has none to show for its probes.
        context.verify_mode = ssl.CERT_OPTIONAL
        trust_also(context, content.client_ca)
    return context


def _content(files: TLSFiles) -> _Content:
    try:
        client_ca = None if files.client_ca is None else files.client_ca.read_bytes()
        if client_ca is not None:
            trust(client_ca)
        return _Content(files.certificate.read_bytes(), files.key.read_bytes(), client_ca)
    except Unusable as error:
        raise UserError(f"cannot verify callers: {files.client_ca} {error}") from error
    except OSError as error:
        raise UserError(f"cannot serve by TLS: {error.filename}: {error.strerror}") from error
