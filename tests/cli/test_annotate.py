"""`longshore annotate` from the command line: passes with a real Prometheus, and errors."""

import io
import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from tests.measure.nodeload import GIB, history, node_name, steady

from longshore.cli.annotate_text import progress, show_text
from longshore.dev import ControlPlane
from longshore.dev.prometheus import MonitoredNodes
from longshore.measure.annotation_writer import Annotated, Pass

Done = subprocess.CompletedProcess[str]

COMMAND = (sys.executable, "-m", "longshore", "annotate")
OURS = ("PROM_IP", "PROM_PORT", "NODE_EXP_PORT", "ANNOTATE_FREQ", "CLUSTER_CONF", "USE_FORECAST", "USE_REQ")


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    inherited = {name: text for name, text in os.environ.items() if name not in OURS}
    return inherited | {"KUBECONFIG": "/nonexistent"} | dict(more or {})


def run(*arguments: str, variables: Mapping[str, str] | None = None) -> Done:
    return subprocess.run(
        [*COMMAND, *arguments], capture_output=True, text=True, check=False, env=environment(variables)
    )


@pytest.fixture(scope="module")
def nodes(control_plane: ControlPlane) -> Iterator[list[str]]:
    """Two nodes of 8 cores and 32 GiB with a label that no other node has."""
    label = node_name("annotated")
    made = control_plane.add_nodes(2, prefix=f"{label}-", labels={"set": label})
    yield made
    control_plane.kubectl("delete", "node", *made)


@pytest.fixture
def these(control_plane: ControlPlane, nodes: list[str]) -> list[str]:
    """The label selector that matches only these nodes."""
    return ["--kubeconfig", str(control_plane.kubeconfig), "-l", f"set={nodes[0].rpartition('-')[0]}"]


@pytest.fixture
def source(prometheus: MonitoredNodes, tmp_path: Path) -> str:
    """A configuration file with the address of Prometheus."""
    file = tmp_path / "measurements.yaml"
    file.write_text(f"provider: prometheus\naddress: {prometheus.url}\nnodeFrom: name\n")
    return str(file)


def annotations(plane: ControlPlane, node: str) -> dict[str, str]:
    found = json.loads(plane.kubectl("get", "node", node, "-o", "json"))
    return dict(found["metadata"]["annotations"])


def test_values_from_prometheus_are_written(
    control_plane: ControlPlane,
    prometheus: MonitoredNodes,
    nodes: list[str],
    these: list[str],
    source: str,
) -> None:
    """The load of a steadily idle node does not vary, although its counters keep rising."""
    now = time.time()
    prometheus.put(history(f"{nodes[0]}:9100", until=now, cores=steady(0.04), memory=steady(3 * GIB)))
    done = run(*these, "--measurements", source, "--once", "-o", "json")
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert [(each["name"], told["unchanged"]) for each in told["nodes"]] == [(nodes[0], 1)]
    found = annotations(control_plane, nodes[0])
    assert float(found["mean-free-cpu"]) == pytest.approx(7960, abs=0.1)
    assert float(found["std-free-cpu"]) == pytest.approx(0, abs=0.01)
    assert found["mean-free-memory"] == str(29 * 2**30)
    assert found["std-free-memory"] == "0"
    assert found["longshore.dev/measured-at"].endswith("Z")
    assert "mean-free-cpu" not in annotations(control_plane, nodes[1])


def test_requests_of_pods_are_written_without_prometheus(
    control_plane: ControlPlane, nodes: list[str], these: list[str]
) -> None:
    done = run(*these, "--only", "allocation", "--once")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "2 nodes: 2 annotated, 0 unchanged"
    found = annotations(control_plane, nodes[0])
    assert (found["requested-cpu"], found["free-cpu"], found["free-gpu"]) == ("0", "8000", "0")
    again = run(*these, "--only", "allocation", "--once")
    assert again.stdout == "2 nodes: 0 annotated, 2 unchanged\n"


def test_a_dry_run_shows_what_would_be_written(
    control_plane: ControlPlane,
    prometheus: MonitoredNodes,
    nodes: list[str],
    these: list[str],
    source: str,
) -> None:
    prometheus.put(history(f"{nodes[1]}:9100", until=time.time(), memory=steady(GIB)))
    done = run(*these, "--measurements", source, "--dry-run")
    assert f"{nodes[1]}: mean-free-memory {31 * 2**30}, std-free-memory 0, longshore.dev" in done.stdout
    assert "would be annotated" in done.stdout
    assert "mean-free-memory" not in annotations(control_plane, nodes[1])


def test_passes_repeat_until_stopped(nodes: list[str], these: list[str]) -> None:
    arguments = (*these, "--only", "allocation", "-o", "json")
    with subprocess.Popen(
        [*COMMAND, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment({"ANNOTATE_FREQ": "0.2"}),
    ) as process:
        try:
            assert process.stdout is not None
            passes = [json.loads(process.stdout.readline()) for _ in range(3)]
            process.send_signal(signal.SIGTERM)
            _, log = process.communicate(timeout=20)
        finally:
            process.kill()
    assert (process.returncode, [each["problem"] for each in passes]) == (0, [""] * 3)
    assert '"event":"annotated"' in log


def test_the_port_of_the_exporter_tells_its_series_from_others(
    control_plane: ControlPlane, prometheus: MonitoredNodes, nodes: list[str], these: list[str]
) -> None:
    address = f"10.77.{secrets.randbelow(256)}.{secrets.randbelow(256)}"
    status = {"status": {"addresses": [{"type": "InternalIP", "address": address}]}}
    control_plane.kubectl("patch", "node", nodes[0], "--subresource=status", "-p", json.dumps(status))
    now = time.time()
    for exporter, used in ((9100, 12 * GIB), (8445, 2 * GIB)):
        prometheus.put(history(f"{address}:{exporter}", until=now, memory=steady(used)))
    for port, free in (("8445", 30), ("", 20)):
        run(*these, "--prometheus", prometheus.url, "--once", variables={"NODE_EXP_PORT": port})
        assert annotations(control_plane, nodes[0])["mean-free-memory"] == str(free * 2**30)


def test_a_prometheus_that_does_not_answer_is_one_line(these: list[str]) -> None:
    """The variables of the original agent give the address of Prometheus."""
    done = run(*these, "--once", variables={"PROM_IP": "127.0.0.1", "PROM_PORT": "1"})
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("error: no measurements: ")
    assert "127.0.0.1:1" in done.stderr


# Without a cluster.


@pytest.mark.parametrize(
    ("arguments", "variables", "code", "words"),
    [
        (("--allocation", "--only", "usage"), {}, 2, "--allocation and --only usage cannot be combined"),
        (
            ("--prometheus", "http://p", "--measurements", "f"),
            {},
            2,
            "--prometheus and --measurements cannot be combined",
        ),
        (("--prometheus", "ftp://p"), {}, 1, "--prometheus: address: must be"),
        ((), {"PROM_PORT": "many"}, 1, "PROM_IP and PROM_PORT: address: must be"),
        (("--interval", "often"), {}, 2, "'often' is not a duration"),
        (("--interval", "10m"), {}, 1, "values would expire before they are renewed"),
        ((), {"ANNOTATE_FREQ": "900"}, 1, "a pass runs every 900 s and values expire after 300 s"),
        (("--measurements", "/no/such/file"), {}, 1, "/no/such/file"),
        (("--once",), {"CLUSTER_CONF": "in-cluster"}, 1, "not in a pod"),
        (("--once",), {}, 1, "no kubeconfig found"),
    ],
)
def test_each_error_is_one_line(
    arguments: tuple[str, ...], variables: dict[str, str], code: int, words: str
) -> None:
    done = run(*arguments, variables=variables)
    assert (done.returncode, done.stdout) == (code, "")
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


def test_variables_without_effect_are_a_warning() -> None:
    variables = {"USE_FORECAST": "True", "USE_REQ": "true", "NODE_EXP_PORT": "many"}
    done = run("--once", variables=variables)
    assert [line.partition(":")[2].split()[0] for line in done.stderr.splitlines()[:-1]] == [
        "USE_FORECAST",
        "USE_REQ",
        "NODE_EXP_PORT=many",
    ]


def test_a_file_with_the_written_annotations_as_its_source_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "measurements.yaml"
    file.write_text("provider: annotations\n")
    done = run("--measurements", str(file), "--once")
    assert done.returncode == 1
    assert "provider annotations cannot be used" in done.stderr


def test_the_file_of_the_original_out_of_the_cluster(tmp_path: Path) -> None:
    (tmp_path / "kubectl.conf").write_text("not: a kubeconfig\n")
    done = subprocess.run(
        [*COMMAND, "--once"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=environment({"CLUSTER_CONF": "out-of-cluster"}),
    )
    assert done.returncode == 1
    assert "kubectl.conf" in done.stderr


def test_of_many_nodes_some_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    nodes = [Annotated(f"n{number}", set={"free-cpu": "1"}) for number in range(24)]
    failed = Annotated("broken", error="the server is busy")
    gone = Annotated("silent", removed=("mean-free-cpu", "std-free-cpu"))
    show_text(Pass((failed, gone, *nodes), unchanged=3, unmeasured=4, began=0.0, seconds=0.1))
    first, second, *_, more, summary = capsys.readouterr().out.splitlines()
    assert first == "broken: not annotated: the server is busy"
    assert second == "silent: removed mean-free-cpu std-free-cpu"
    assert more == "and 6 more: -o json shows them"
    assert summary == "29 nodes: 25 annotated, 3 unchanged, 4 without measurements, 1 failed"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("nodes", "drawn"), [(20, False), (2000, True)], ids=["few", "many"])
def test_a_bar_on_a_terminal_is_for_many_nodes(nodes: int, drawn: bool) -> None:
    terminal = Terminal()
    with progress(terminal) as on_progress:
        for done in range(1, nodes):
            on_progress(done, nodes)
    assert ("annotating nodes" in terminal.getvalue()) == drawn
