"""The certificates of a planner that serves TLS.

The files are read again for every new connection. Files that cannot be used are an error at the start; later
they are logged, and the previous certificate stays in use.
"""

from typing import TYPE_CHECKING

import structlog

from longshore.errors import UserError
from longshore.serve.tls_files import TLSContent, TLSFiles

if TYPE_CHECKING:
    import grpc

log = structlog.get_logger()


def credentials(files: TLSFiles) -> "grpc.ServerCredentials":
    """Return credentials that renew themselves. Raise UserError if the files cannot be used."""
    import grpc

    in_use = _read(files)

    def renewed() -> "grpc.ServerCertificateConfiguration | None":
        nonlocal in_use
        try:
            found = _read(files)
        except UserError as error:
            log.warning("the planner's new certificate cannot be used", reason=str(error))
            return None
        if found == in_use:
            return None
        in_use = found
        return _configuration(found)

    return grpc.dynamic_ssl_server_credentials(
        _configuration(in_use),
        renewed,  # type: ignore[arg-type] # None means that nothing changed, which the stubs do not allow
        require_client_authentication=files.client_ca is not None,
    )


def _read(files: TLSFiles) -> TLSContent:
    # gRPC does not report what is wrong with a certificate, but the standard library does.
    files.context()
    return files.read()


def _configuration(content: TLSContent) -> "grpc.ServerCertificateConfiguration":
    import grpc

    return grpc.ssl_server_certificate_configuration([(content.key, content.certificate)], content.client_ca)
