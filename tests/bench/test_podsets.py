"""The benchmark of pod sets in small: that it measures both sides, not what it measures."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.control_plane


def test_quick_run_ends_with_the_ratio_and_its_bar() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "bench.podsets", "--quick"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    last = run.stdout.splitlines()[-1]
    assert re.fullmatch(r"pod set, trigger to last bind/ceiling = \d+\.\d\d \(bar 0\.7\)", last), run.stdout
