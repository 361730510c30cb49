import errno
import shutil
import socket
import subprocess
import sys

import pytest

from longshore.dev.ports import Port


def test_a_port_cannot_be_taken_before_it_is_used() -> None:
    port = Port()
    with socket.socket() as other, pytest.raises(OSError, match="in use") as refusal:
        other.bind(("127.0.0.1", port.number))
    assert refusal.value.errno == errno.EADDRINUSE
    port.release()


def test_all_ports_are_different() -> None:
    ports = [Port() for _ in range(500)]
    assert len({port.number for port in ports}) == 500
    for port in ports:
        port.release()


def test_the_reserving_socket_gets_no_connections_of_the_server() -> None:
    port = Port()
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        server.bind(("127.0.0.1", port.number))
        server.listen()
        server.settimeout(5)
        for _ in range(50):
            with socket.create_connection(("127.0.0.1", port.number), timeout=1):
                server.accept()[0].close()
    port.release()


def test_a_missing_free_port_is_reported_in_one_line() -> None:
    """In a separate network namespace with a single free port, which is already in use."""
    in_namespace = ["unshare", "--user", "--map-root-user", "--net"]
    if not shutil.which("unshare") or subprocess.run([*in_namespace, "true"], check=False).returncode:
        pytest.skip("creating a network namespace is not permitted on this machine")
    script = """
import pathlib
from longshore.dev.ports import Port
from longshore.errors import UserError
pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").write_text("40000 40000")
first = Port()
try:
    Port()
except UserError as error:
    print(error)
first.release()
print(Port().number)
"""
    bring_up = 'ip link set lo up 2>/dev/null; exec "$0" -c "$1"'
    command = [*in_namespace, "sh", "-c", bring_up, sys.executable, script]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert lines == [
        "no free port on 127.0.0.1 for the API server: Address already in use; "
        "end programs that hold many ports, then try again",
        "40000",
    ]
