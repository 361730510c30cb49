"""docs/plugins.md is correct: with its files, its commands print what it shows."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from longshore.config.registry import load_plugins
from longshore.dev.build import build
from longshore.sim import schedule
from longshore.testing import PodBuilder, node, pod

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "plugins.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", TEXT, flags=re.MULTILINE | re.DOTALL)


def blocks(language: str) -> list[str]:
    return [text for kind, text in BLOCKS if kind == language]


def console(containing: str) -> str:
    [found] = [text for text in blocks("console") if containing in text]
    return found


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with the files of the page. The first line of each has its name."""
    for text in (*blocks("python"), *blocks("yaml")):
        name = text.splitlines()[0].removeprefix("# ")
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(script: str, folder: Path, **environment: str) -> str:
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env={"PATH": path, "HOME": str(folder), "PYTHONDONTWRITEBYTECODE": "1", **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("containing", ["pytest", "longshore plugins"])
def test_commands_print_the_output_on_the_page(folder: Path, containing: str) -> None:
    lines = console(containing).splitlines()
    printed = run("\n".join(["set -e", *(line[2:] for line in lines if line.startswith("$ "))]), folder)
    for line in lines:
        assert line.startswith("$ ") or line.rstrip() in printed, f"{line!r} is not in:\n{printed}"


def test_the_vectorized_plugins_behave_as_described(folder: Path) -> None:
    plugins = load_plugins(["vectorized.py"])
    placed = schedule(
        nodes=[node("a").allocatable(cpu="4"), node("b").allocatable(cpu="4").labels(disk="ssd")],
        pods=[*(pod(name).requests(cpu="2") for name in ("x", "y", "z", "w")), pod("v").priority(-1)],
        plugins=[plugin.thing for plugin in plugins.values()],
    )
    assert sorted(placed.values()) == ["a", "a", "b", "b"]
    assert placed["x"] == "b"
    assert "2 node(s) had less than a core to spare" in placed.pending["v"]


def test_the_plugin_that_reads_annotations_and_conditions_behaves_as_described(folder: Path) -> None:
    plugin = load_plugins(["teams.py"])["SameTeam"]

    def of(team: str, name: str) -> PodBuilder:
        return pod(name).annotations(**{"example.com/team": team})

    there = [
        of(team, team).on(name).condition("Ready", "True") for name, team in (("a", "red"), ("b", "blue"))
    ]
    placed = schedule(
        nodes=[node("a"), node("b")], pods=[*there, of("blue", "x"), of("green", "y")], plugins=[plugin.thing]
    )
    assert placed["x"] == "b"
    assert "2 node(s) belonged to another team" in placed.pending["y"]


def test_a_plugin_that_raises_is_reported_as_shown(folder: Path) -> None:
    plugin = load_plugins(["cheap_nodes.py"])["WithinBudget"]
    placed = schedule(nodes=[node("a").labels(price="cheap")], pods=[pod("x")], plugins=[plugin.thing])
    [shown] = [text.strip() for text in blocks("text")]
    assert placed.pending == {"x": shown}


@pytest.mark.parametrize("page", ["plugins.md", "limits.md"])
def test_links_lead_to_existing_files(page: str) -> None:
    targets = re.findall(r"\]\(([^)#]+)\)", (ROOT / "docs" / page).read_text())
    assert targets
    assert [target for target in targets if not (ROOT / "docs" / target).exists()] == []


@pytest.mark.control_plane
def test_walk_through_on_a_real_cluster(folder: Path) -> None:
    """Run every line in one shell, with a separate cache directory for the cluster."""
    cache = folder / "cache"
    cache.mkdir()
    (cache / "control-plane").symlink_to(build().parent)
    commands = [line.removeprefix("$ ") for line in console("longshore dev up").splitlines()]
    commands.insert(1, "trap 'set +e; kill $(jobs -p) 2> /dev/null; longshore dev down 2> /dev/null' EXIT")
    printed = run("set -em\n" + "\n".join(commands), folder, LONGSHORE_CACHE=str(cache))
    assert re.search(r"^web +1/1 +Running.* node-1 ", printed, flags=re.MULTILINE), printed
