"""`longshore risk` from the command line: its table, its JSON, its picture, and one line for each error."""

import json
import os
import re
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from tests.measure.nodeload import history, steady

from longshore.agents.safe import SafeOverloadArgs
from longshore.api import Node
from longshore.ask.risks import Risks, demand, risks
from longshore.cli.risk_plot import draw_plot
from longshore.cli.risk_text import draw, percent
from longshore.dev import ControlPlane
from longshore.dev.prometheus import MonitoredNodes
from longshore.testing import node

Done = subprocess.CompletedProcess[str]

GI = 2**30
WARM = {
    "mean-free-cpu": "2400",
    "std-free-cpu": "500",
    "mean-free-memory": str(5 * GI),
    "std-free-memory": str(GI),
}
FULL = {
    "mean-free-cpu": "900",
    "std-free-cpu": "300",
    "mean-free-memory": str(2 * GI),
    "std-free-memory": str(GI // 2),
}
MAGIC = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}
WITHOUT_MATPLOTLIB = "import sys; sys.modules['matplotlib'] = None; from longshore.cli import main; main()"


def run(*arguments: str, environment: Mapping[str, str] | None = None, code: str = "") -> Done:
    program = ["-c", code] if code else ["-m", "longshore"]
    return subprocess.run(
        [sys.executable, *program, "risk", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={name: text for name, text in os.environ.items() if not name.startswith("SAFE")}
        | {"KUBECONFIG": "/nonexistent", "PYTHONIOENCODING": "utf-8"}
        | dict(environment or {}),
    )


@pytest.fixture(scope="module")
def nodes(control_plane: ControlPlane) -> Iterator[list[str]]:
    """A warm node, a full node and a node without measurements, each with 8 cores and 16 GiB."""
    made = control_plane.add_nodes(3, prefix=f"risky-{secrets.token_hex(3)}-", memory="16Gi")
    for name, told in zip(made, (WARM, FULL), strict=False):
        control_plane.kubectl("annotate", "node", name, *(f"{key}={text}" for key, text in told.items()))
    yield made
    control_plane.kubectl("delete", "node", *made)


def as_json(plane: ControlPlane, *arguments: str, environment: Mapping[str, str] | None = None) -> Any:
    done = run("--kubeconfig", str(plane.kubeconfig), "-o", "json", *arguments, environment=environment)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def drawn(*nodes: Node, capsys: pytest.CaptureFixture[str], everything: bool = False) -> list[str]:
    draw(found(*nodes), everything=everything)
    return capsys.readouterr().out.splitlines()


def found(*nodes: Node, args: SafeOverloadArgs | None = None) -> Risks:
    return risks(
        {each.metadata.name: each for each in nodes},
        (),
        None,
        pod=demand({"cpu": "500m", "memory": "1Gi"}),
        args=args or SafeOverloadArgs(),
        max_age=300.0,
        now=0.0,
    )


def loaded(name: str, told: Mapping[str, str]) -> Node:
    return node(name).allocatable(cpu="8", memory="16Gi").annotations(**told)


def test_nodes_of_a_cluster_as_json(control_plane: ControlPlane, nodes: list[str]) -> None:
    told = as_json(control_plane, *nodes, "--cpu", "500m", "--memory", "1Gi")
    assert [each["name"] for each in told["nodes"]] == [nodes[1], nodes[0], nodes[2]]
    warm = told["nodes"][1]
    assert warm["scores"] == {"safe-overload": 80, "safe-balance": 50}
    assert set(warm["resources"]["cpu"]) >= {"mu", "sigma", "alpha", "beta", "risk", "accepted", "reason"}
    assert told["demand"] == {"cpu": 500, "memory": GI}


def test_flags_go_before_environment_variables(control_plane: ControlPlane, nodes: list[str]) -> None:
    environment = {"SAFEUTILIZATION": "100", "SAFEPERCENTILE": "5"}
    told = as_json(control_plane, nodes[1], "--percentile", "60", environment=environment)
    assert (told["utilization"], told["percentile"]) == (100, 60)


def test_a_table_that_no_terminal_reads_has_no_colours(
    control_plane: ControlPlane, nodes: list[str], tmp_path: Path
) -> None:
    picture = tmp_path / "risk.png"
    done = run(nodes[0], "--kubeconfig", str(control_plane.kubeconfig), "--plot", str(picture))
    assert (done.returncode, done.stderr) == (0, f"distributions drawn to {picture}\n")
    assert "\x1b" not in done.stdout
    assert re.search(rf"^{nodes[0]} +cpu +█+░+ +70% +6\.2%", done.stdout, flags=re.MULTILINE)
    assert picture.read_bytes().startswith(MAGIC[".png"])


def test_the_risks_from_the_measurements_of_a_provider(
    control_plane: ControlPlane, prometheus: MonitoredNodes, nodes: list[str], tmp_path: Path
) -> None:
    source = tmp_path / "measurements.yaml"
    source.write_text(f"provider: prometheus\naddress: {prometheus.url}\n")
    prometheus.put(history(nodes[2], until=time.time(), cores=steady(2), memory=steady(4 * GI)))
    (bare,) = as_json(control_plane, nodes[2], "--measurements", str(source))["nodes"]
    cpu = bare["resources"]["cpu"]
    assert (cpu["mean"], cpu["mu"]) == (pytest.approx(2000, rel=1e-3), pytest.approx(0.25, rel=1e-3))
    assert 0 <= cpu["age"] < 60
    assert bare["resources"]["memory"]["mu"] == 0.25


def test_a_node_that_does_not_exist_is_one_line(control_plane: ControlPlane, nodes: list[str]) -> None:
    done = run(f"{nodes[0]}x", "--kubeconfig", str(control_plane.kubeconfig))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"error: node {nodes[0]}x does not exist: did you mean {nodes[0]}")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--cpu", "lots"), 1, "cpu: 'lots' is not a quantity"),
        (("--percentile", "130"), 2, "130 is not in the range"),
        (("--plot", "risk.gif"), 2, "risk.gif must end in .png, .svg or .pdf"),
        (("--plot", "/no/such/folder/risk.png"), 1, "folder /no/such/folder does not exist"),
        (("--measurements", "/no/such/file"), 1, "/no/such/file"),
        ((), 1, "no kubeconfig found"),
    ],
)
def test_each_error_is_one_line(arguments: tuple[str, ...], code: int, words: str) -> None:
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_picture_without_matplotlib() -> None:
    done = run("--plot", "risk.png", code=WITHOUT_MATPLOTLIB)
    assert (done.returncode, done.stderr) == (
        1,
        "error: --plot needs matplotlib: pip install 'longshore[plot]'\n",
    )


# Without a cluster.


def test_a_node_that_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    heading, _, titles, cpu, memory, *_, summary = drawn(loaded("full", FULL), capsys=capsys)
    assert heading == (
        "risk that more than 90% is used, with one more pod of 500 millicores and 1Gi of memory; "
        "up to 30% is accepted"
    )
    assert titles.split() == ["node", "used", "deviation", "risk", "safe-overload", "safe-balance"]
    assert re.fullmatch(r"full +cpu .* 89% (→|->) 95% +3\.8% +89\.8% +0 +40 +rejected *", cpu)
    assert re.fullmatch(r" +memory .* 88% (→|->) 94% +3\.1% +87\.9% +rejected *", memory)
    assert summary == "1 node, 1 rejected"


def test_an_unknown_deviation_does_not_look_like_zero(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    once = {key: text for key, text in WARM.items() if key.startswith("mean")}
    _, _, _, cpu, memory, *_ = drawn(loaded("once", once), capsys=capsys)
    assert re.fullmatch(r"once +cpu .* 70% (→|->) 76% +- +0% +100 +60 *", cpu)
    assert re.fullmatch(r" +memory .* 69% (→|->) 75% +- +0% *", memory)
    picture = tmp_path / "risk.svg"
    draw_plot(found(loaded("once", once)), str(picture))
    assert "deviation unknown" in picture.read_text()


def test_a_negligible_deviation_counts_as_zero(tmp_path: Path) -> None:
    shown = found(loaded("still", WARM | {"std-free-cpu": "0.004"}))
    cpu = shown.nodes[0].resources["cpu"]
    assert (cpu.deviation, cpu.alpha, cpu.beta, cpu.risk) == (0.004, None, None, 0.0)
    picture = tmp_path / "risk.svg"
    draw_plot(shown, str(picture))
    assert "does not vary" in picture.read_text()


def test_a_node_without_measurements(capsys: pytest.CaptureFixture[str]) -> None:
    *_, summary = lines = drawn(loaded("bare", {}), capsys=capsys)
    assert any(line.split()[:5] == ["bare", "cpu", "no", "fresh", "measurements"] for line in lines)
    assert summary == "1 node, 0 rejected, 1 without fresh measurements"


def test_of_many_nodes_the_worst_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    many = [loaded(f"n{number}", WARM) for number in range(25)]
    assert "and 5 more: --all shows them" in drawn(*many, capsys=capsys)
    assert "and 5 more: --all shows them" not in drawn(*many, capsys=capsys, everything=True)


@pytest.mark.parametrize(
    ("risk", "text"),
    [(0.0, "0%"), (1e-9, "<0.1%"), (0.0349, "3.5%"), (0.9995, ">99.9%"), (1.0, "100%")],
)
def test_a_small_risk_does_not_look_like_none(risk: float, text: str) -> None:
    assert percent(risk) == text


@pytest.mark.parametrize("ending", MAGIC)
def test_a_picture_of_each_kind(tmp_path: Path, ending: str) -> None:
    """Usual distributions, two distributions that do not exist, and no measurement."""
    steady = WARM | {"std-free-cpu": "0", "std-free-memory": str(8 * GI)}
    file = tmp_path / f"risk{ending}"
    assert (
        draw_plot(found(loaded("warm", WARM), loaded("steady", steady), loaded("bare", {})), str(file)) == 0
    )
    assert file.read_bytes().startswith(MAGIC[ending])


def _pictured(risks: Risks, file: Path, monkeypatch: pytest.MonkeyPatch) -> Figure:
    """Return the figure that the command writes to the file."""
    kept: list[Figure] = []
    write = Figure.savefig

    def savefig(self: Figure, *args: Any, **kwargs: Any) -> None:
        kept.append(self)
        write(self, *args, **kwargs)

    monkeypatch.setattr(Figure, "savefig", savefig)
    assert draw_plot(risks, str(file)) == 0
    (figure,) = kept
    return figure


def _shaded(axes: Axes) -> float:
    """Return the share of the area under the curve that is beyond the threshold."""
    within, beyond = (np.asarray(shade.get_paths()[0].vertices).T for shade in axes.collections)
    areas = [abs(np.trapezoid(up, across)) for across, up in (within, beyond)]
    return float(areas[1] / sum(areas))


def _points(line: Line2D) -> tuple[list[float], list[float]]:
    across, up = line.get_data()
    return np.asarray(across, dtype=float).tolist(), np.asarray(up, dtype=float).tolist()


@pytest.mark.parametrize("utilization", [90, 60])
def test_a_picture_shows_the_computed_risks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, utilization: int
) -> None:
    """Each measured resource has a curve near its mean, a threshold, and the area beyond the threshold."""
    told = loaded("warm", WARM), loaded("full", FULL), loaded("bare", {})
    shown = found(*told, args=SafeOverloadArgs(utilization=utilization))
    figure = _pictured(shown, tmp_path / "risk.png", monkeypatch)
    resources = [
        (each.name, resource, risk) for each in shown.nodes for resource, risk in each.resources.items()
    ]
    assert [(name, resource) for name, resource, _ in resources] == [
        (name, resource) for name in ("full", "warm", "bare") for resource in ("cpu", "memory")
    ]
    assert len(figure.axes) == len(resources)
    for axes, (name, resource, risk) in zip(figure.axes, resources, strict=True):
        assert axes.get_ylabel() == resource
        assert axes.get_title(loc="left") == (name if resource == "cpu" else "")
        threshold, *curves = axes.get_lines()
        assert _points(threshold)[0] == [utilization / 100] * 2
        words = " ".join(text.get_text() for text in axes.texts)
        if name == "bare":
            assert (curves, words) == ([], "no fresh measurements")
            continue
        (curve,) = curves
        shares, heights = map(np.array, _points(curve))
        assert risk.mu is not None
        assert risk.sigma is not None
        assert risk.risk is not None
        # The highest point of the curve, its mean, and the share beyond the threshold. The density of a Beta
        # distribution near an end is highest between its mean and that end.
        size = risk.mu * (1 - risk.mu) / risk.sigma**2 - 1
        highest = (risk.mu * size - 1) / (size - 2)
        assert abs(highest - risk.mu) < risk.sigma
        assert shares[heights.argmax()] == pytest.approx(highest, abs=1e-3)
        whole = np.trapezoid(heights, shares)
        assert np.trapezoid(shares * heights, shares) / whole == pytest.approx(risk.mu, abs=1e-3)
        assert _shaded(axes) == pytest.approx(risk.risk, abs=1e-3)
        assert words == f"risk {percent(risk.risk)}"


@pytest.mark.parametrize("deviation", ["80", "8", "0.8", "0.08"])
@pytest.mark.parametrize("free", ["1308", "1300.8", "1300.08"])
def test_the_shaded_part_of_a_narrow_peak_at_the_threshold_is_its_risk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: str, deviation: str
) -> None:
    told = WARM | {"mean-free-cpu": free, "std-free-cpu": deviation}
    shown = found(loaded("narrow", told))
    cpu, _memory = _pictured(shown, tmp_path / "risk.png", monkeypatch).axes
    assert _shaded(cpu) == pytest.approx(shown.nodes[0].resources["cpu"].risk, abs=1e-3)


def test_a_picture_says_how_many_nodes_it_leaves_out(tmp_path: Path) -> None:
    file = tmp_path / "risk.svg"
    assert draw_plot(found(*(loaded(f"n{number}", WARM) for number in range(15))), str(file)) == 3
    assert "without 3 more" in file.read_text()


def test_a_picture_without_any_node(tmp_path: Path) -> None:
    file = tmp_path / "risk.png"
    assert draw_plot(found(), str(file)) == 0
    assert file.read_bytes().startswith(MAGIC[".png"])
