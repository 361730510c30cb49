"""Agents are chosen one by one: what one of them needs, or breaks, is not the others' business."""

import subprocess
import sys

import pytest

AGENTS = ("safe", "pigeon", "congestion", "foo")


@pytest.mark.parametrize("agent", AGENTS)
def test_importing_an_agent_imports_no_other_and_no_scipy(agent: str) -> None:
    script = f"import sys, longshore.agents.{agent}; print(*sorted(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    imported = set(ran.stdout.split())
    others = {f"longshore.agents.{other}" for other in AGENTS if other != agent}
    assert f"longshore.agents.{agent}" in imported
    assert imported & (others | {"scipy"}) == set()
