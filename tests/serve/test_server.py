"""The port for probes and Prometheus."""

import gzip
import socket
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.serve.engines import Observed, roomy

from longshore.dev.certificates import Authority
from longshore.engine import Engine
from longshore.errors import UserError
from longshore.serve import Health, serving
from longshore.serve.tls_files import TLSFiles
from longshore.testing import pod

LOOPBACK = "127.0.0.1"
WELL = Health(live={"loop": lambda: ""}, ready={"sched-handler-sync": lambda: ""})


def get(
    port: int, path: str, *, headers: Mapping[str, str] | None = None, tls: ssl.SSLContext | None = None
) -> tuple[int, str]:
    scheme = "https" if tls else "http"
    request = urllib.request.Request(f"{scheme}://{LOOPBACK}:{port}{path}", headers=dict(headers or {}))  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=10, context=tls) as answer:  # noqa: S310
            body = answer.read()
            return answer.status, (
                gzip.decompress(body) if answer.headers["Content-Encoding"] == "gzip" else body
            ).decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


@pytest.fixture
def observed() -> Observed:
    return Observed(Engine())


@pytest.fixture
def port(observed: Observed) -> Iterator[int]:
    with serving(observed.registry, WELL, port=0, address=LOOPBACK) as number:
        yield number


def test_metrics_are_what_prometheus_reads(observed: Observed, port: int) -> None:
    observed.add(roomy(), pod("web"))
    observed.bind_all()
    status, text = get(port, "/metrics")
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert status == 200
    [scheduled] = [
        sample.value
        for sample in families["scheduler_schedule_attempts"].samples
        if sample.labels["result"] == "scheduled"
    ]
    assert scheduled == 1
    assert "process_resident_memory_bytes" in families


def test_metrics_come_as_open_metrics_and_compressed_if_asked_for(port: int) -> None:
    wanted = {"Accept": "application/openmetrics-text; version=1.0.0", "Accept-Encoding": "gzip"}
    status, text = get(port, "/metrics", headers=wanted)
    assert status == 200
    assert text.endswith("# EOF\n")


def test_a_healthy_process_answers_ok(port: int) -> None:
    assert [get(port, path) for path in ("/healthz", "/livez", "/readyz")] == [(200, "ok")] * 3


def test_checks_are_listed_if_asked_for(port: int) -> None:
    assert get(port, "/readyz?verbose") == (
        200,
        "[+]ping ok\n[+]loop ok\n[+]sched-handler-sync ok\nreadyz check passed\n",
    )


def test_one_that_is_not_ready_is_alive(observed: Observed) -> None:
    health = Health(live={}, ready={"sched-handler-sync": lambda: "pods are missing"})
    with serving(observed.registry, health, port=0, address=LOOPBACK) as port:
        assert get(port, "/healthz") == (200, "ok")
        assert get(port, "/readyz") == (
            500,
            "[+]ping ok\n[-]sched-handler-sync failed: pods are missing\nreadyz check failed\n",
        )


def test_one_that_is_not_alive_is_not_ready(observed: Observed) -> None:
    health = Health(live={"loop": lambda: "stuck"}, ready={})
    with serving(observed.registry, health, port=0, address=LOOPBACK) as port:
        assert [get(port, path)[0] for path in ("/healthz", "/livez", "/readyz")] == [500] * 3


def test_a_port_in_use_is_one_clear_line(observed: Observed, port: int) -> None:
    words = f"port {port}: Address already in use; .*--metrics-port"
    again = serving(observed.registry, WELL, port=port, address=LOOPBACK)
    with pytest.raises(UserError, match=words) as told:
        again.__enter__()
    assert "\n" not in str(told.value)


def test_without_an_address_it_listens_on_all_of_them(observed: Observed) -> None:
    with serving(observed.registry, WELL, port=0) as port:
        assert get(port, "/healthz") == (200, "ok")


def test_the_port_is_free_again_afterwards(observed: Observed) -> None:
    with serving(observed.registry, WELL, port=0, address=LOOPBACK) as port:
        pass
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((LOOPBACK, port), timeout=5)


def test_with_a_certificate_it_is_served_by_https(observed: Observed, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    server = authority.server("metrics", hosts=["localhost"], addresses=[LOOPBACK])
    tls = TLSFiles(server.public, server.private).context()
    trust = ssl.create_default_context(cafile=authority.file)
    with serving(observed.registry, WELL, port=0, address=LOOPBACK, tls=tls) as port:
        assert get(port, "/healthz", tls=trust) == (200, "ok")


def test_a_wrong_certificate_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no\.crt"):
        TLSFiles(tmp_path / "no.crt", tmp_path / "no.key").context()


def test_probes_are_answered_while_the_main_thread_is_busy(port: int) -> None:
    answers: list[tuple[int, str]] = []
    asking = threading.Thread(target=lambda: answers.append(get(port, "/healthz")))
    asking.start()
    deadline = time.monotonic() + 10
    while not answers and time.monotonic() < deadline:
        sum(range(1000))
    asking.join()
    assert answers == [(200, "ok")]


def test_metrics_are_read_while_the_engine_works(observed: Observed, port: int) -> None:
    """Neither thread fails, and every attempt is counted."""
    done = threading.Event()
    broken: list[int] = []

    def read() -> None:
        while not done.is_set():
            status, _ = get(port, "/metrics")
            if status != 200:
                broken.append(status)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    observed.add(*(roomy(f"node-{number}") for number in range(20)))
    for number in range(600):
        observed.add(pod(f"web-{number}"), pod(f"huge-{number}").requests(cpu="100"))
        observed.bind_all()
    done.set()
    for reader in readers:
        reader.join()
    assert not broken
    total = "scheduler_schedule_attempts_total"
    assert observed.value(total, result="scheduled", profile="longshore") == 600
