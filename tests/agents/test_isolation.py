"""Agents are chosen one by one: what one of them needs or breaks does not affect the others."""

import subprocess
import sys

import pytest

from longshore.serve.extender.agent_choice import known_agents

MODULES = [point.value for point in known_agents().values()]


@pytest.mark.parametrize("module", MODULES)
def test_importing_an_agent_imports_no_other_and_no_scipy(module: str) -> None:
    script = f"import sys, {module}; print(*sorted(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    imported = set(ran.stdout.split())
    assert module in imported
    assert imported & ({*MODULES, "scipy"} - {module}) == set()
