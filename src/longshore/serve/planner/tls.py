"""Certificates of a planner that serves by TLS, as renewed in their files while it runs.

The files are looked at for every new connection. What cannot be used is told at the start; later the
certificate that worked so far stays in use.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import structlog

from longshore.errors import UserError
from longshore.kube.tls import Unusable, trust
from longshore.serve.server import tls_from

if TYPE_CHECKING:
    import grpc

log = structlog.get_logger()


class ServerTLS(msgspec.Struct, frozen=True):
    """Files in PEM format. With `client_ca` only callers with a certificate of that authority are heard."""

    certificate: Path
    key: Path
    client_ca: Path | None = None


def credentials(tls: ServerTLS) -> "grpc.ServerCredentials":
    """Raises UserError if the files cannot be used."""
    import grpc

    in_use = _read(tls)

    def renewed() -> "grpc.ServerCertificateConfiguration | None":
        nonlocal in_use
        try:
            found = _read(tls)
        except UserError as error:
            log.warning("the planner's new certificate is not taken", reason=str(error))
            return None
        if found == in_use:
            return None
        in_use = found
        return found.configuration()

    return grpc.dynamic_ssl_server_credentials(
        in_use.configuration(),
        renewed,  # type: ignore[arg-type] # None means that nothing has changed, which the stubs leave out
        require_client_authentication=tls.client_ca is not None,
    )


class _Content(msgspec.Struct, frozen=True):
    certificate: bytes
    key: bytes
    client_ca: bytes | None

    def configuration(self) -> "grpc.ServerCertificateConfiguration":
        import grpc

        return grpc.ssl_server_certificate_configuration([(self.key, self.certificate)], self.client_ca)


def _read(tls: ServerTLS) -> _Content:
    # gRPC does not say what is wrong with a certificate: the standard library does.
    tls_from(str(tls.certificate), str(tls.key))
    try:
        client_ca = tls.client_ca.read_bytes() if tls.client_ca else None
        if client_ca is not None:
            trust(client_ca)
        return _Content(tls.certificate.read_bytes(), tls.key.read_bytes(), client_ca)
    except Unusable as error:
        raise UserError(f"cannot verify callers: {tls.client_ca} {error}") from error
    except OSError as error:
        raise UserError(f"cannot serve plans: {error.filename}: {error.strerror}") from error
