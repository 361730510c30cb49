"""The certificates of an extender that serves TLS.

Files that cannot be used are an error at the start; later they are logged, and the previous ones stay in use.
A client is verified against the CAs that are in the file when its connection begins.
"""

import ssl

import structlog

from longshore.errors import UserError
from longshore.kube.tls import trust_also
from longshore.serve.tls_files import TLSContent, TLSFiles

log = structlog.get_logger()


class _Renewed(ssl.SSLContext):
    """Gives each new connection the context that is in use.

    A context cannot remove a CA, and it resumes sessions without verifying the client again. So renewed files
    get a new context.
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
    """The certificates in use. Raises UserError if the files cannot be used."""

    def __init__(self, files: TLSFiles) -> None:
        self._files = files
        self._content = files.read()
        self.context = _Renewed(ssl.PROTOCOL_TLS_SERVER)
        self.context.in_use = _context(files, self._content)

    def authenticates(self, client: ssl.SSLObject) -> bool:
        """Whether the client has presented a certificate, if required. The handshake has verified it."""
        return self._files.client_ca is None or client.getpeercert(binary_form=True) is not None

    def uses(self, context: ssl.SSLContext | None) -> bool:
        """Whether this context is the one in use."""
        return context is self.context.in_use

    def renew(self) -> None:
        """Use the files' new contents if they have changed and can be used."""
        try:
            content = self._files.read()
            if content == self._content:
                return
            self.context.in_use = _context(self._files, content)
            self._content = content
            log.info("the certificate was renewed", file=str(self._files.certificate))
        except (UserError, OSError) as error:
            log.warning("the new certificate cannot be used", reason=str(error))


def _context(files: TLSFiles, content: TLSContent) -> ssl.SSLContext:
    context = files.context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if content.client_ca is not None:
        # A certificate of another CA fails the handshake; kubelet's probes present no certificate.
        context.verify_mode = ssl.CERT_OPTIONAL
        trust_also(context, content.client_ca)
    return context
