"""A real Prometheus for tests, and an exporter that it scrapes, so that a test can set the load of nodes.

Samples that are put into the exporter are served once, with their own times. So 15 minutes of history are
available after one scrape, without waiting.
"""

import json
import shutil
import tempfile
import threading
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from longshore.dev.build import PROMETHEUS, build
from longshore.dev.component import Component
from longshore.dev.ports import Port
from longshore.errors import UserError

_SCRAPE_SECONDS = 0.25
_PUT_SECONDS = 30.0
_CONFIGURATION = """\
global: {{scrape_interval: {interval}ms, scrape_timeout: {interval}ms}}
scrape_configs:
- job_name: node
  # One server represents all nodes, and the samples name their node.
  honor_labels: true
  static_configs: [{{targets: ['127.0.0.1:{port}']}}]
"""


class MonitoredNodes:
    """The samples for the exporter to serve, and the address at which Prometheus answers queries."""

    def __init__(self) -> None:
        self.url = ""
        self._changed = threading.Condition()
        self._waiting = ""
        self._scrapes = 0

    def put(self, exposition: str) -> None:
        """Add samples in Prometheus' text format, and return when they can be queried."""
        with self._changed:
            self._waiting += exposition
            # After two more scrapes, the samples of the scrape that served them are stored.
            served = self._changed.wait_for(lambda: not self._waiting, _PUT_SECONDS)
            stored = self._scrapes + 2
            if not (served and self._changed.wait_for(lambda: self._scrapes >= stored, _PUT_SECONDS)):
                raise UserError(f"Prometheus did not scrape within {_PUT_SECONDS:g} s")

    def query(self, promql: str) -> Any:
        """Return the result of an instant query."""
        url = f"{self.url}/api/v1/query?" + urllib.parse.urlencode({"query": promql})
        with urllib.request.urlopen(url, timeout=10) as response:  # noqa: S310 - on this machine
            return json.load(response)["data"]["result"]

    def scrape(self) -> str:
        with self._changed:
            text, self._waiting = self._waiting, ""
            self._scrapes += 1
            self._changed.notify_all()
        return text


@contextmanager
def monitored_nodes() -> Iterator[MonitoredNodes]:
    """Run Prometheus and the exporter, on ports of the loopback address."""
    program = build(bundle=PROMETHEUS) / "prometheus"
    folder = Path(tempfile.mkdtemp(prefix="longshore-prometheus-"))
    nodes = MonitoredNodes()
    port = Port()
    try:
        with _exporting(nodes) as exporter:
            configuration = _CONFIGURATION.format(interval=round(_SCRAPE_SECONDS * 1000), port=exporter)
            (folder / "prometheus.yml").write_text(configuration)
            nodes.url = f"http://127.0.0.1:{port.number}"
            # Prometheus cannot share a port, so for a moment another program could take it.
            port.release()
            server = Component(
                "prometheus",
                program,
                [
                    "--config.file=prometheus.yml",
                    "--storage.tsdb.path=data",
                    f"--web.listen-address=127.0.0.1:{port.number}",
                    "--log.level=warn",
                ],
                folder=folder,
                ready=lambda: _answers(f"{nodes.url}/-/ready"),
            )
            server.start()
            try:
                server.wait_ready()
                yield nodes
            finally:
                server.kill()
    finally:
        port.release()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _exporting(nodes: MonitoredNodes) -> Iterator[int]:
    """Serve the samples, and yield the port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = nodes.scrape().encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            # Prometheus may give up first. A traceback in this thread can break parsing in another one.
            with suppress(ConnectionError):
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name it has there
            """Write no access log."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _answers(url: str) -> bool:
    with suppress(OSError), urllib.request.urlopen(url, timeout=2) as response:  # noqa: S310 - on this machine
        return bool(response.status == 200)
    return False
