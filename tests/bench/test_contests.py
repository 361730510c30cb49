"""Quick runs of the contests. They check that all sides are measured, not the results."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.control_plane


@pytest.mark.parametrize(
    ("name", "ending"),
    [
        ("throughput", [r"longshore/kube-scheduler = \d+\.\d\d", r"longshore/ceiling = \d+\.\d\d"]),
        ("unschedulable", [r"next to 200 unschedulable pods/without = \d+\.\d\d \(bar 0\.8\)"]),
        ("static", [r"longshore static/ceiling = \d+\.\d\d \(bar 0\.85\)"]),
        (
            "podsets",
            [
                r"5 sets of 4 pods held: \d+\.\d% of a core \(bar 5%\)",
                r"pod set, trigger to first bind = \d+\.\d\d s in the slowest round \(bar 1 s\)",
                r"pod set, trigger to last bind/ceiling = \d+\.\d\d \(bar 0\.7\)",
            ],
        ),
        (
            "extender",
            [
                *(
                    rf"kept of kube-scheduler's throughput: \d+\.\d\d  {what}"
                    for what in (
                        r"whole Node objects \(one turn\)",
                        "two entries",
                        r"one entry \(bar 0\.5, goal 0\.7\)",
                        "a no-op extender",
                        "one entry, both without the environment of the manifests",
                        "one entry, both with a tenth of the nodes",
                        "one entry with a tenth of the nodes",
                    )
                ),
                r"one entry/a no-op extender = \d+\.\d\d",
                r"longshore with SafeOverload/without = \d+\.\d\d \(bar 0\.9\)",
            ],
        ),
    ],
)
def test_a_quick_run_ends_with_all_of_its_ratios(name: str, ending: list[str]) -> None:
    run = subprocess.run(
        [sys.executable, "-m", f"bench.{name}", "--quick"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    last = run.stdout.splitlines()[-len(ending) :]
    for line, pattern in zip(last, ending, strict=True):
        assert re.fullmatch(pattern, line), run.stdout
    assert "rounds: 1; the bars apply to the median of 5 or more\n" in run.stderr
