"""The certificates of an extender that serves by TLS, as renewed in their files while it runs.

What cannot be used is told at the start; later the certificate that worked so far stays in use. An authority
of callers that is replaced in its file is trusted from then on, and the one before until the end.
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


class Certificates:
    """Raises UserError if the files cannot be used."""

    def __init__(self, files: TLSFiles) -> None:
        self._files = files
        self._in_use = _content(files)
        self.context = tls_from(str(files.certificate), str(files.key))
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        if files.client_ca is not None:
            # A certificate of another authority ends the handshake; kubelet has none to show for its probes.
            self.context.verify_mode = ssl.CERT_OPTIONAL
        self._trust()

    def knows(self, caller: ssl.SSLObject) -> bool:
        """Whether it showed a certificate, if callers have to. The handshake has verified it."""
        return self._files.client_ca is None or caller.getpeercert(binary_form=True) is not None

    def renew(self) -> None:
        """Take up what has changed in the files, if it can be used."""
        try:
            content = _content(self._files)
            if content == self._in_use:
                return
            # Tried apart first: half of a change would be worse than none.
            tls_from(str(self._files.certificate), str(self._files.key))
            self.context.load_cert_chain(self._files.certificate, self._files.key)
            self._in_use = content
            self._trust()
            log.info("the certificate was renewed", file=str(self._files.certificate))
        except (UserError, OSError) as error:
            log.warning("the new certificate is not taken", reason=str(error))

    def _trust(self) -> None:
        authority = self._in_use[2]
        if authority:
            trust_also(self.context, authority)


def _content(files: TLSFiles) -> tuple[bytes, bytes, bytes]:
    try:
        authority = b"" if files.client_ca is None else files.client_ca.read_bytes()
        if files.client_ca is not None:
            trust(authority)
        return files.certificate.read_bytes(), files.key.read_bytes(), authority
    except Unusable as error:
        raise UserError(f"cannot verify callers: {files.client_ca} {error}") from error
    except OSError as error:
        raise UserError(f"cannot serve by TLS: {error.filename}: {error.strerror}") from error
