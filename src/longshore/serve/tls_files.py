"""The certificate, key and authority of a server, which are read again when they are renewed."""

import ssl
from pathlib import Path

import msgspec

from longshore.errors import UserError
from longshore.kube.tls import Unusable, trust


class TLSContent(msgspec.Struct, frozen=True):
    """The contents of the files."""

    certificate: bytes
    key: bytes
    client_ca: bytes | None


class TLSFiles(msgspec.Struct, frozen=True):
    """Files in PEM format. With `client_ca`, clients authenticate with a certificate signed by that CA."""

    certificate: Path
    key: Path
    client_ca: Path | None = None

    def read(self) -> TLSContent:
        """Return the contents. Raise UserError if a file cannot be read or the CA cannot be used."""
        try:
            client_ca = None if self.client_ca is None else self.client_ca.read_bytes()
            if client_ca is not None:
                trust(client_ca)
            return TLSContent(self.certificate.read_bytes(), self.key.read_bytes(), client_ca)
        except Unusable as error:
            raise UserError(f"cannot verify clients: {self.client_ca} {error}") from error
        except OSError as error:
            raise UserError(f"cannot serve with TLS: {error.filename}: {error.strerror}") from error

    def context(self) -> ssl.SSLContext:
        """Return a context that serves the certificate. Raise UserError if it and the key do not match."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        try:
            context.load_cert_chain(self.certificate, self.key)
        except (OSError, ssl.SSLError) as error:
            raise UserError(
                f"cannot serve with certificate {self.certificate} and key {self.key}: {error}"
            ) from error
        return context
