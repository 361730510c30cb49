"""The socket that a server listens on."""

import os
import socket

from longshore.errors import UserError


def listen(address: str, port: int, *, what: str, flag: str, backlog: int | None = None) -> socket.socket:
    """Return a socket that listens on the address, or on every IPv4 and IPv6 address if it is empty.

    Port 0 takes a free port. The UserError for a port that cannot be used names `what` cannot be served and
    the `flag` that chooses another port.
    """
    try:
        if not address and socket.has_dualstack_ipv6():
            return socket.create_server(
                ("", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=backlog
            )
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        return socket.create_server((address, port), family=family, backlog=backlog)
    except (OSError, OverflowError) as error:
        reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
        raise UserError(
            f"cannot serve {what} on port {port}: {reason}; choose another with {flag}, or 0 for a free port"
        ) from error
