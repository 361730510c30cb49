"""A small HTTP extender that follows the labels of pods and keeps the requests that it received.

Labels: `only` are the nodes that its filter leaves (joined by dots), `likes` the node that it ranks highest,
`spare` a node whose pods it does not let be evicted, `broken` an error that it answers with.
"""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Said = dict[str, Any]


class Webhook:
    def __init__(self, bind: Callable[[Said], None]) -> None:
        self.heard: list[tuple[str, Said]] = []
        self._bind = bind
        self.url = ""

    def answer(self, verb: str, said: Said) -> Any:
        self.heard.append((verb, said))
        if verb == "bind":
            self._bind(said)
            return {}
        labels = said["Pod"]["metadata"].get("labels", {})
        if verb == "filter":
            return self._filter(labels, said)
        if verb == "prioritize":
            names = said["NodeNames"] or [node["metadata"]["name"] for node in said["Nodes"]["items"]]
            return [{"Host": name, "Score": 10 * (labels.get("likes") == name)} for name in names]
        victims = said["NodeNameToMetaVictims"]
        return {"NodeNameToMetaVictims": {n: v for n, v in victims.items() if n != labels.get("spare")}}

    def _filter(self, labels: dict[str, str], said: Said) -> Said:
        if "broken" in labels:
            return {"Error": labels["broken"]}
        items = (said["Nodes"] or {}).get("items", [])
        names = said["NodeNames"] or [node["metadata"]["name"] for node in items]
        left = [name for name in names if "only" not in labels or name in labels["only"].split(".")]
        return {
            "Nodes": {"items": [node for node in items if node["metadata"]["name"] in left]},
            "NodeNames": left,
            "FailedNodes": {name: "node(s) were not among the chosen" for name in names if name not in left},
        }

    @contextmanager
    def running(self) -> Iterator["Webhook"]:
        webhook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                said = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                body = json.dumps(webhook.answer(self.path.rpartition("/")[2], said)).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name it has there
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{server.server_port}/v1/"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            server.shutdown()
            thread.join()
            server.server_close()
