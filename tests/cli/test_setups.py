"""The setup of a scheduler by commands: the profile for pod sets by name, and files that contain it."""

from pathlib import Path

import pytest

from longshore.cli.setups import set_up
from longshore.config import ProfileConfiguration
from longshore.config.setup import Setup
from longshore.engine import Engine
from longshore.podset.profile import holds_sets, missing_points

SETS = "podset-planner-scheduler"
HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
# As Pallet deploys it.
PALLET = """\
apiVersion: kubescheduler.config.k8s.io/v1beta2
kind: KubeSchedulerConfiguration
leaderElection:
  leaderElect: false
profiles:
  - schedulerName: podset-planner-scheduler
    plugins:
      preFilter:
        enabled:
          - name: PodSetPlanner
      postFilter:
        enabled:
          - name: PodSetPlanner
        disabled:
          - name: "*"
      preScore:
        enabled:
          - name: PodSetPlanner
      score:
        enabled:
          - name: PodSetPlanner
      reserve:
        enabled:
          - name: PodSetPlanner
    pluginConfig:
      - name: PodSetPlanner
        args:
          apiVersion: kubescheduler.config.k8s.io/v1beta2
          kind: PodSetPlannerArgs
          debug: true
          callTimeout: 10s
"""


def only(setup: Setup) -> ProfileConfiguration:
    (profile,) = setup.configuration.profiles
    return profile


def file(tmp_path: Path, text: str) -> str:
    path = tmp_path / "scheduler.yaml"
    path.write_text(text)
    return str(path)


def test_without_a_file_there_are_the_default_profile_and_that_of_sets() -> None:
    names = {each.scheduler_name: holds_sets(each) for each in set_up(None).configuration.profiles}
    assert names == {"longshore": False, SETS: True}


def test_the_name_of_the_profile_of_sets_means_that_profile() -> None:
    setup = set_up(None, scheduler_name=SETS, planner_args={"plannerFallback": "none"})
    assert only(setup).scheduler_name == SETS
    assert only(setup).args["PodSetPlanner"] == {"plannerFallback": "none"}
    assert missing_points(only(setup)) == ()
    assert len(Engine(setup.configuration, plugins=setup.plugins).controllers) == 1


def test_the_file_of_pallet_holds_sets(tmp_path: Path) -> None:
    setup = set_up(file(tmp_path, PALLET))
    profile = only(setup)
    assert missing_points(profile) == ()
    assert [each.name for each in profile.points["postFilter"]] == ["PodSetPlanner"]
    assert all(each.name != "PodSetPlanner" for each in profile.points["score"])
    assert setup.warnings == (
        "apiVersion: kubescheduler.config.k8s.io/v1beta2 is read as kubescheduler.config.k8s.io/v1, with its "
        "default plugins and weights; write kubescheduler.config.k8s.io/v1",
        "PodSetPlanner: accepted at preScore and score, but has no effect there in Longshore",
        f"profile {SETS}: PodSetPlanner must also be enabled at preEnqueue, permit; it was enabled there",
    )
    assert len(Engine(setup.configuration, plugins=setup.plugins).controllers) == 1


def test_a_file_with_the_plugin_at_all_points_is_taken_as_it_is(tmp_path: Path) -> None:
    plugins = "{multiPoint: {enabled: [{name: PodSetPlanner}]}}"
    text = f"{HEAD}profiles: [{{schedulerName: {SETS}, plugins: {plugins}}}]\n"
    setup = set_up(file(tmp_path, text + "leaderElection: {leaderElect: false}\n"))
    assert missing_points(only(setup)) == ()
    assert setup.warnings == ()


@pytest.mark.parametrize(("said", "flag"), [(SETS, None), ("other", SETS)])
def test_a_profile_of_that_name_that_does_not_hold_sets_is_a_warning(
    tmp_path: Path, said: str, flag: str | None
) -> None:
    text = f"{HEAD}profiles: [{{schedulerName: {said}}}]\nleaderElection: {{leaderElect: false}}\n"
    (warning,) = set_up(file(tmp_path, text), scheduler_name=flag).warnings
    assert warning.startswith(f"profile {SETS}: pods of sets are not held or planned")
    assert "enable PodSetPlanner" in warning
