"""The README is correct: its commands and plugins work, and so do its links and those of docs/."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests import demo_picture

from longshore.dev.build import build
from longshore.sim import schedule
from longshore.testing import node, pod

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "examples").rglob("*.md")),
]


def block(language: str, containing: str) -> str:
    blocks = re.findall(rf"^```{language}\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)
    [found] = [text for text in blocks if containing in text]
    return str(found)


def test_the_demo_picture_shows_the_output_of_the_demo() -> None:
    drawn = demo_picture.picture(demo_picture.demo_output())
    assert demo_picture.FILE.read_text() == drawn, "draw it again: python -m tests.demo_picture"


def test_the_readme_stays_short() -> None:
    assert len(README.splitlines()) <= 120


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_and_their_anchors_exist(page: Path) -> None:
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = page.parent / name if name else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            broken.append(target)
    assert broken == []


def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub creates for the headings."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("name", ["README.md", "docs/performance.md"])
def test_every_benchmark_on_the_page_is_a_make_target(name: str) -> None:
    named = set(re.findall(r"make (bench-\w+)", (ROOT / name).read_text()))
    assert named
    assert named <= set(re.findall(r"^(bench-\w+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))


def test_figures_in_the_readme_are_those_of_the_performance_page() -> None:
    """Each row of the README is the beginning of a row there."""
    rows = re.findall(r"^\| [\d,]+, [\d,]+, .*$", README, flags=re.MULTILINE)
    assert rows
    performance = (ROOT / "docs" / "performance.md").read_text()
    assert [row for row in rows if f"\n{row}" not in performance] == []


def test_the_first_plugin_of_the_readme_behaves_as_described() -> None:
    shown: dict[str, Any] = {}
    exec(block("python", "score_plugin"), shown)  # noqa: S102 - it is ours
    nodes = [node(name).allocatable(cpu="8") for name in ("busy", "quiet")]
    on_busy = [pod(f"busy-{number}").on("busy") for number in range(3)]
    placed = schedule(nodes=nodes, pods=[*on_busy, pod("web")], plugins=[shown["quiet_nodes"]])
    assert placed["web"] == "quiet"
    assert shown["quiet_nodes"].weight == 2


@pytest.mark.control_plane
def test_walk_through_on_a_real_cluster(tmp_path: Path) -> None:
    """Run every line in one shell, with a separate cache directory for the cluster."""
    cache = tmp_path / "cache"
    cache.mkdir()
    (cache / "control-plane").symlink_to(build().parent)
    commands = [line.removeprefix("$ ") for line in block("console", "longshore run").splitlines()]
    commands.insert(1, "trap 'set +e; kill $(jobs -p) 2> /dev/null; longshore dev down 2> /dev/null' EXIT")
    script = "set -em\n" + "\n".join(commands)
    done = subprocess.run(
        ["bash", "-c", script],
        env={
            "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
            "HOME": str(tmp_path),
            "LONGSHORE_CACHE": str(cache),
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"^web +1/1 +Running", done.stdout, flags=re.MULTILINE)
