"""Ports that no other program can take between choosing and using them.

The kernel picks a free port for a socket that is bound but never listens. The API server then listens on the
same port with SO_REUSEPORT (`--permit-port-sharing`), which the kernel allows only for the same user. So
there is no race, and the port stays reserved while the API server is down.
"""

import socket

from longshore.errors import UserError


class Port:
    """A TCP port of 127.0.0.1, reserved until it is released."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        try:
            self._socket.bind(("127.0.0.1", 0))
        except OSError as error:
            self._socket.close()
            raise UserError(
                f"no free port on 127.0.0.1 for the API server: {error.strerror}; "
                "end programs that hold many ports, then try again"
            ) from error
        self.number: int = self._socket.getsockname()[1]

    def release(self) -> None:
        self._socket.close()
