"""`longshore run` before it schedules: settings from the file and from flags, and refused combinations."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.config.configurations import configuration

from longshore.cli.run import _with_flags
from longshore.config import Configuration
from longshore.errors import UserError

FILE = """
    leaderElection: {leaderElect: false, resourceName: ours}
    profiles: [{schedulerName: from-the-file}]
    longshore: {tieBreak: first, seed: 7}
"""
TWO = "profiles: [{schedulerName: one}, {schedulerName: two}]"


def with_flags(
    body: str = FILE,
    *,
    scheduler_name: str | None = None,
    leader_elect: bool | None = None,
    seed: int | None = None,
) -> Configuration:
    return _with_flags(
        configuration(body),
        scheduler_name=scheduler_name,
        leader_elect=leader_elect,
        tie_break=None if seed is None else "random",
        seed=seed,
    )


def test_without_flags_the_file_counts() -> None:
    assert with_flags() == configuration(FILE)


def test_flags_go_before_the_file() -> None:
    found = with_flags(scheduler_name="from-the-flag", leader_elect=True, seed=3)
    assert [profile.scheduler_name for profile in found.profiles] == ["from-the-flag"]
    assert (found.leader_election.leader_elect, found.leader_election.resource_name) == (True, "ours")
    assert (found.longshore.tie_break, found.longshore.seed) == ("random", 3)


def test_one_name_does_not_fit_two_profiles() -> None:
    with pytest.raises(UserError, match="--scheduler-name requires a configuration with one profile"):
        with_flags(TWO, scheduler_name="three")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "profiles: [{plugins: {filter: {enabled: [{name: Nope}]}}}]",
            "profiles[0].plugins.filter.enabled[0]",
        ),
        ("profiles: [{plugins: {score: {enabled: [{name: ImageLocality, weight: -1}]}}}]", "weight"),
        ("extenders: [{filterVerb: filter}]", "extenders[0].urlPrefix"),
        ("extenders: [{urlPrefix: 'https://a', tlsConfig: {caFile: /no/such}}]", "/no/such"),
    ],
)
def test_a_file_that_cannot_be_used_is_one_line_and_nothing_is_scheduled(
    tmp_path: Path, text: str, words: str
) -> None:
    file = tmp_path / "scheduler.yaml"
    file.write_text(f"apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n{text}\n")
    done = run("--config", str(file), "--kubeconfig", "/no/such/kubeconfig")
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_plugin_that_cannot_be_loaded_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("import nothing_of_this_name\n")
    done = run("--plugin", str(file), "--kubeconfig", "/no/such/kubeconfig")
    assert done.returncode == 1
    assert "mine.py:1" in done.stderr
    assert done.stderr.count("\n") == 1


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "longshore", "run", *arguments], capture_output=True, text=True, check=False
    )
