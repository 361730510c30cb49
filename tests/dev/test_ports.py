import errno
import shutil
import socket
import subprocess
import sys

import pytest

from longshore.dev.ports import Port


def test_port_cannot_be_taken_before_it_is_used() -> None:
    port = Port()
    with socket.socket() as other, pytest.raises(OSError, match="in use") as refusal:
        other.bind(("127.0.0.1", port.number))
    assert refusal.value.errno == errno.EADDRINUSE
    port.release()


def test_no_two_ports_are_the_same() -> None:
    ports = [Port() for _ in range(500)]
    assert len({port.number for port in ports}) == 500
    for port in ports:
        port.release()


def test_holder_does_not_take_connections_from_the_server_that_shares_the_port() -> None:
    port = Port()
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        server.bind(("127.0.0.1", port.number))
        server.listen()
        for _ in range(50):
            with socket.create_connection(("127.0.0.1", port.number), timeout=1):
                server.accept()[0].close()
    port.release()


def test_no_free_port_is_one_line() -> None:
    """In a network of its own with a single port to hand out, which is taken."""
    in_namespace = ["unshare", "--user", "--map-root-user", "--net"]
    if not shutil.which("unshare") or subprocess.run([*in_namespace, "true"], check=False).returncode:
        pytest.skip("this machine does not let us make a network namespace")
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
