"""The README is true: what it shows is what happens."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from longshore.dev.build import build
from longshore.sim import schedule
from longshore.testing import node, pod

README = (Path(__file__).parents[1] / "README.md").read_text()


def block(language: str, containing: str) -> str:
    blocks = re.findall(rf"^```{language}\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)
    [found] = [text for text in blocks if containing in text]
    return str(found)


def test_demo_prints_what_the_readme_shows() -> None:
    printed = subprocess.run(
        [sys.executable, "-m", "longshore", "demo"], capture_output=True, text=True, check=True
    ).stdout

    def lines(text: str) -> list[str]:
        """All but the speed, which differs from machine to machine."""
        return [re.sub(r"[\d,]+ a second", "N a second", line.rstrip()) for line in text.strip().splitlines()]

    assert lines(printed) == lines(block("text", "longshore demo"))


def test_the_plugin_shown_first_does_what_it_says() -> None:
    shown: dict[str, Any] = {}
    exec(block("python", "score_plugin"), shown)  # noqa: S102 - it is ours
    nodes = [node(name).allocatable(cpu="8") for name in ("busy", "quiet")]
    on_busy = [pod(f"busy-{number}").on("busy") for number in range(3)]
    placed = schedule(nodes=nodes, pods=[*on_busy, pod("web")], plugins=[shown["quiet_nodes"]])
    assert placed["web"] == "quiet"
    assert shown["quiet_nodes"].weight == 2


@pytest.mark.control_plane
def test_walk_through_on_a_real_cluster(tmp_path: Path) -> None:
    """Every line as it stands, in one shell, with a cache folder of its own for the cluster."""
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
