"""`longshore static` before it schedules: flags, environment variables instead of flags, and errors."""

import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.kube.kubeconfigs import document, write
from tests.live.static import environment

from longshore.cli.static import command

# A variable and its flag, and for each a value as text and as it is parsed.
TABLE = [
    ("KUBECONFIG", "--kubeconfig", ("a.yaml", "a.yaml"), ("b.yaml", "b.yaml")),
    ("SCHED_INCLUSTER_BASE_PATH", "--incluster-base-path", ("/a", "/a"), ("/b", "/b")),
    ("SCHED_NAME", "--name", ("one", "one"), ("two", "two")),
    ("SCHED_DELAY", "--delay", ("2.5", 2.5), ("3", 3.0)),
    ("SCHED_PROMETHEUS_PORT", "--prometheus-port", ("9000", 9000), ("9001", 9001)),
]
DEFAULTS = {
    "name": "rfcustom",
    "verbose": 0,
    "kubeconfig": None,
    "incluster_base_path": None,
    "daemon": False,
    "delay": 10.0,
    "prometheus_port": 8000,
    "prometheus_disable": False,
    "low_cardinality": False,
    "legacy_labels": True,
    "respect_taints": False,
    "at_random": False,
}


def understood(*arguments: str) -> dict[str, Any]:
    with command.make_context("static", list(arguments)) as context:
        return context.params


def run(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "longshore", "static", *arguments],
        env=environment(folder, variables),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture(autouse=True)
def _nothing_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable, *_ in TABLE:
        monkeypatch.delenv(variable, raising=False)


def test_without_flags_and_variables_the_defaults_count() -> None:
    assert understood() == DEFAULTS


@pytest.mark.parametrize(("variable", "flag", "one", "_other"), TABLE, ids=[row[0] for row in TABLE])
def test_a_variable_sets_the_value(
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
    flag: str,
    one: tuple[str, object],
    _other: tuple[str, object],
) -> None:
    monkeypatch.setenv(variable, one[0])
    assert understood() == DEFAULTS | {flag.removeprefix("--").replace("-", "_"): one[1]}


@pytest.mark.parametrize(("variable", "flag", "one", "other"), TABLE, ids=[row[1] for row in TABLE])
def test_a_flag_takes_precedence_over_its_variable(
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
    flag: str,
    one: tuple[str, object],
    other: tuple[str, object],
) -> None:
    monkeypatch.setenv(variable, one[0])
    assert understood(flag, other[0]) == DEFAULTS | {flag.removeprefix("--").replace("-", "_"): other[1]}


def test_short_flags_are_those_of_the_original() -> None:
    assert understood("-d", "-vvv") == DEFAULTS | {"daemon": True, "verbose": 3}


@pytest.mark.parametrize(
    ("arguments", "variables", "words"),
    [
        ((), {"SCHED_DELAY": "soon"}, "'soon' is not a valid float"),
        ((), {"SCHED_DELAY": "-1"}, "--delay: it must be a number of seconds, 0 or more"),
        ((), {"SCHED_DELAY": "nan"}, "--delay: it must be a number of seconds, 0 or more"),
        ((), {"SCHED_PROMETHEUS_PORT": "http"}, "'http' is not a valid integer"),
        (("--prometheus-port=65536",), {}, "65536 is not in the range"),
        (("--name=My_Scheduler",), {}, "cannot be part of a label"),
    ],
)
def test_a_wrong_value_is_one_line_and_exit_code_2(
    tmp_path: Path, arguments: tuple[str, ...], variables: dict[str, str], words: str
) -> None:
    done = run(tmp_path, *arguments, **variables)
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


def test_without_a_cluster_the_error_names_the_places_searched(tmp_path: Path) -> None:
    done = run(tmp_path, "--kubeconfig=/no/such/file", "--incluster-base-path=/no/such/folder")
    assert done.returncode == 1
    assert done.stderr == (
        "error: No kubeconfig or token found: looked for /no/such/file and /no/such/folder/token; "
        "give --kubeconfig FILE\n"
    )


@pytest.mark.parametrize("mode", [(), ("--daemon",)], ids=["one pass", "daemon"])
def test_a_server_that_does_not_answer_ends_it_with_one_line(tmp_path: Path, mode: tuple[str, ...]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        address = f"http://127.0.0.1:{closed.getsockname()[1]}"
    kubeconfig = write(tmp_path / "kubeconfig", document(cluster={"server": address}))
    done = run(tmp_path, *mode, KUBECONFIG=str(kubeconfig), SCHED_PROMETHEUS="false")
    assert done.returncode == 1
    assert done.stderr.startswith("error: cannot talk to the API server: ")
    assert done.stderr.count("\n") == 1


def test_a_port_in_use_ends_the_daemon_with_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run(tmp_path, "--daemon", SCHED_PROMETHEUS_PORT=str(port))
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: cannot serve metrics on port {port}: Address already in use")
    assert "--prometheus-port" in done.stderr
    assert done.stderr.count("\n") == 1
