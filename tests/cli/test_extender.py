"""`longshore extender` as a process: its flags, its environment, and its errors when it cannot start."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.waiting import eventually

from longshore.dev.ports import Port

_NOWHERE = {"KUBECONFIG": "/nonexistent", "HOME": "/nonexistent", "KUBERNETES_SERVICE_HOST": ""}
_STANDALONE = ("--agents=congestion", "--standalone", "--bind-address=127.0.0.1")


def environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("HTTP_PORT", "LOG_LEVEL")}
    return {**kept, **_NOWHERE, **more}


def refused(*arguments: str, **env: str) -> str:
    """Return the last line of a process that does not start."""
    done = subprocess.run(
        [sys.executable, "-m", "longshore", "extender", *arguments],
        env=environment(**env),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode in (1, 2), done.stderr
    line = done.stderr.strip().splitlines()[-1]
    assert line.startswith("error: ")
    return line


@dataclass
class Extender:
    process: subprocess.Popen[str]
    lines: list[dict[str, object]] = field(default_factory=list)

    def read(self, event: str) -> Mapping[str, object]:
        """Return the log up to the line with this event."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(json.loads(line))
            if self.lines[-1]["event"] == event:
                return self.lines[-1]
        raise AssertionError(f"it ended without {event!r}: {self.lines}")

    def get(self, path: str) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.lines[-1]['port']}{path}", timeout=10) as answer:
            return str(answer.read().decode())


@contextmanager
def running(*arguments: str, **env: str) -> Iterator[Extender]:
    process = subprocess.Popen(
        [sys.executable, "-m", "longshore", "extender", *arguments],
        env=environment(**env),
        stderr=subprocess.PIPE,
        text=True,
    )
    extender = Extender(process)
    try:
        extender.read("serving")
        yield extender
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.communicate()


def test_it_serves_on_the_port_of_the_environment_with_its_level() -> None:
    with running(*_STANDALONE, HTTP_PORT="0", LOG_LEVEL="debug") as extender:
        assert extender.get("/version")
        assert [line.get("log_level") for line in extender.lines] == ["DEBUG", None]
        assert extender.lines[-1]["priorities"] == ["congestion"]


def test_flags_win_over_the_environment() -> None:
    with running(*_STANDALONE, "--port=0", "--log-level=info", HTTP_PORT="1", LOG_LEVEL="ALERT") as extender:
        assert extender.lines[0]["log_level"] == "INFO"


def test_an_unknown_log_level_is_a_warning_and_means_info() -> None:
    with running(*_STANDALONE, "--port=0", LOG_LEVEL="LOUD") as extender:
        warnings = [line for line in extender.lines if line["level"] == "warning"]
        assert [line["found"] for line in warnings] == ["LOUD"]
        assert "INFO" in [line.get("log_level") for line in extender.lines]


def _log_after_requests(level: str) -> list[dict[str, str]]:
    """Two filters, three priorities, one request that no kube-scheduler sends, and probes in between."""
    port = Port()
    port.release()
    process = subprocess.Popen(
        [sys.executable, "-m", "longshore", "extender", "--agents=safe", *_STANDALONE[1:]],
        env=environment(HTTP_PORT=str(port.number), LOG_LEVEL=level),
        stderr=subprocess.PIPE,
    )
    said = json.dumps({"Pod": {}, "Nodes": {"items": [{"metadata": {"name": "a"}}]}}).encode()
    statuses = []
    try:
        # At some levels no line tells that it serves.
        eventually(
            lambda: (process.poll(), _status(port.number, "healthz")),
            lambda found: found[0] is not None or found[1] == 200,
        )
        for verb, count, body in (
            ("predicates/safe-overload", 2, said),
            ("priorities/safe-overload", 3, said),
            ("predicates/safe-overload", 1, b"{"),
        ):
            statuses += [_status(port.number, f"scheduler/{verb}", body) for _ in range(count)]
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=20)
    finally:
        process.kill()
        process.communicate()
    assert (statuses, process.returncode) == ([200] * 5 + [400], 0)
    return [json.loads(line) for line in log.splitlines()]


def _status(port: int, path: str, body: bytes | None = None) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET" if body is None else "POST", f"/{path}", body)
        return connection.getresponse().status
    except ConnectionRefusedError:
        return 0
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("level", "asked", "answered", "malformed", "kept"),
    [
        ("DEBUG", 6, 5, 1, {"debug", "info", "warning"}),
        ("INFO", 0, 5, 1, {"info", "warning"}),
        ("WARNING", 0, 0, 1, {"warning"}),
        ("ERROR", 0, 0, 0, set()),
    ],
)
def test_each_level_leaves_out_the_lower_ones(
    level: str, asked: int, answered: int, malformed: int, kept: set[str]
) -> None:
    """Each request has a line `asked`, and each request that an agent answered has a line `answered`."""
    log = _log_after_requests(level)
    count = Counter(line["event"] for line in log)
    found = count["asked"], count["answered"], count["malformed request"]
    assert found == (asked, answered, malformed)
    assert {line["level"] for line in log} == kept
    if asked:
        verbs = Counter(line["verb"] for line in log if line["event"] == "asked")
        assert verbs == {"predicates/safe-overload": 3, "priorities/safe-overload": 3}


def test_a_broken_agent_is_reported_with_its_line_and_the_others_are_served(tmp_path: Path) -> None:
    broken = tmp_path / "pigeons.py"
    broken.write_text("import os\n\nclass Pigeons(\n")
    with running(f"--agents=congestion,{broken}", *_STANDALONE[1:], "--port=0") as extender:
        [told] = [line for line in extender.lines if line["level"] == "error"]
        assert str(told["reason"]).startswith(f"{broken}:3: ")
        assert extender.lines[-1]["priorities"] == ["congestion"]


def test_only_the_chosen_agents_are_imported() -> None:
    code = (
        "import sys; from longshore.serve.extender.agent_choice import choose; choose(['congestion']); "
        "print([m for m in sys.modules if m.startswith('longshore.agents.')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "congestion" in done.stdout
    assert not re.search("safe|pigeon|reward|foo", done.stdout)


def test_arguments_of_agents_come_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "agents.yaml"
    file.write_text("Congestion:\n  factorMax: 10\n")
    said = {
        "Pod": {},
        "Nodes": {"items": [{"metadata": {"name": "a", "annotations": {"congestion-factor": "3"}}}]},
    }
    with running(*_STANDALONE, "--port=0", f"--agent-config={file}") as extender:
        url = f"http://127.0.0.1:{extender.lines[-1]['port']}/scheduler/priorities/congestion"
        with urllib.request.urlopen(url, data=json.dumps(said).encode(), timeout=10) as answer:
            assert json.loads(answer.read()) == [{"Host": "a", "Score": 7}]


def test_fine_scores_are_out_of_a_hundred() -> None:
    load = {"mean-free-cpu": "2400", "std-free-cpu": "500"}
    calm = {"metadata": {"name": "a", "annotations": load}, "status": {"allocatable": {"cpu": "4"}}}
    said = {"Pod": {}, "Nodes": {"items": [calm]}}
    with running("--agents=safe", *_STANDALONE[1:], "--port=0", "--fine-scores") as extender:
        url = f"http://127.0.0.1:{extender.lines[-1]['port']}/scheduler/priorities/safe-balance"
        with urllib.request.urlopen(url, data=json.dumps(said).encode(), timeout=10) as answer:
            # From a mean of 40 percent and a deviation of 12.5 percent.
            assert json.loads(answer.read()) == [{"Host": "a", "Score": 62}]


def test_help_names_the_environment() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "longshore", "extender", "--help"], capture_output=True, text=True, check=True
    )
    assert "HTTP_PORT" in done.stdout
    assert "LOG_LEVEL" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--port=0",), "--agents"),
        (("--agents=saef",), "agent 'saef' does not exist: choose from"),
        (("--agents=,",), "no agent was chosen"),
        (("--agents=congestion", "--port=0"), "no kubeconfig found .*--standalone"),
        (("--agents=congestion", "--log-level=loud"), "'loud' is not one of"),
        (("--agents=congestion", "--tls-cert-file=a.crt"), "--tls-private-key-file must be given together"),
        (("--agents=congestion", "--client-ca-file=a.crt"), "--client-ca-file requires --tls-cert-file"),
        (("--agents=congestion", "--standalone", "--kubeconfig=x"), "--standalone cannot be combined with"),
        ((*_STANDALONE, "--agent-config=/nonexistent"), "cannot read /nonexistent: No such file"),
        (
            ("--agents=congestion", "--measurements=/nonexistent", "--port=0"),
            "/nonexistent",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_invalid_arguments_are_one_line(arguments: tuple[str, ...], words: str) -> None:
    assert re.search(words, refused(*arguments))


def test_an_invalid_port_is_one_line() -> None:
    assert "HTTP_PORT is 'eighty'" in refused(*_STANDALONE, HTTP_PORT="eighty")
