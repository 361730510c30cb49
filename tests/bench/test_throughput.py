"""The throughput benchmark in small: that it measures all three sides, not what it measures."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.control_plane


def test_quick_run_ends_with_both_ratios() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "bench.throughput", "--quick"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    lines = run.stdout.splitlines()
    assert re.fullmatch(r"longshore/kube-scheduler = \d+\.\d\d", lines[-2]), run.stdout
    assert re.fullmatch(r"longshore/ceiling = \d+\.\d\d", lines[-1]), run.stdout
