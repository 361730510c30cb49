"""A configuration together with the plugins that are given on the command line."""

from pathlib import Path
from textwrap import dedent

import pytest

from longshore.config.setup import Setup, set_up
from longshore.errors import UserError

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
PLUGIN = """
from longshore.framework import score_plugin

@score_plugin(weight=4)
def mine(pod, node):
    return 1
"""
EVERYWHERE = """
class Everywhere:
    name = "Everywhere"
    def filter_node(self, state, pod, node): ...
    def score_node(self, state, pod, node): return 0
    def bind(self, state, pod, node): ...
    def sort_key(self, pod, since): return since
"""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(PLUGIN)


def names(setup: Setup, point: str, profile: int = 0) -> list[str]:
    return [plugin.name for plugin in setup.configuration.profiles[profile].points[point]]


def configured(body: str, *plugins: str) -> Setup:
    Path("scheduler.yaml").write_text(HEAD + dedent(body))
    return set_up("scheduler.yaml", plugins=plugins)


def test_without_file_and_plugins_there_is_the_default_profile() -> None:
    setup = set_up(scheduler_name="other")
    assert [profile.scheduler_name for profile in setup.configuration.profiles] == ["other"]
    assert setup.plugins == {}


def test_a_given_plugin_is_enabled_with_its_own_weight() -> None:
    last = set_up(plugins=["mine.py"]).configuration.profiles[0].points["score"][-1]
    assert (last.name, last.weight) == ("Mine", 4)


def test_a_given_plugin_is_enabled_in_every_profile_of_the_file() -> None:
    setup = configured("profiles: [{schedulerName: a}, {schedulerName: b}]", "mine.py")
    assert [names(setup, "score", profile)[-1] for profile in (0, 1)] == ["Mine", "Mine"]


def test_a_given_plugin_that_the_file_enables_has_the_settings_of_the_file() -> None:
    setup = configured(
        """
        profiles:
        - schedulerName: a
          plugins: {score: {enabled: [{name: Mine, weight: 7}]}}
        - schedulerName: b
        """,
        "mine.py",
    )
    assert setup.configuration.profiles[0].points["score"][-1].weight == 7
    assert "Mine" not in names(setup, "score", 1)


def test_a_given_plugin_that_the_file_disables_stays_disabled() -> None:
    setup = configured("profiles: [{plugins: {score: {disabled: [{name: Mine}]}}}]", "mine.py")
    assert "Mine" not in names(setup, "score")


def test_arguments_alone_leave_a_given_plugin_enabled() -> None:
    setup = configured("profiles: [{pluginConfig: [{name: Mine, args: {a: 1}}]}]", "mine.py")
    assert names(setup, "score")[-1] == "Mine"
    assert setup.configuration.profiles[0].args["Mine"] == {"a": 1}


def test_a_plugin_that_the_file_loads_can_be_enabled_in_the_file() -> None:
    Path("folder").mkdir()
    Path("folder/mine.py").write_text(PLUGIN)
    Path("folder/scheduler.yaml").write_text(HEAD + "longshore: {plugins: [mine.py]}\n")
    Path("mine.py").unlink()
    setup = set_up("folder/scheduler.yaml")
    assert setup.plugins.keys() == {"Mine"}
    assert "Mine" not in names(setup, "score")


def test_a_plugin_that_is_both_given_and_loaded_by_the_file_is_enabled() -> None:
    setup = configured("longshore: {plugins: [mine.py]}", "./mine.py")
    assert names(setup, "score")[-1] == "Mine"


def test_a_given_binder_comes_before_the_default_one_and_a_given_sort_replaces_it() -> None:
    Path("everywhere.py").write_text(EVERYWHERE)
    setup = set_up(plugins=["everywhere.py"])
    assert names(setup, "bind") == ["Everywhere", "DefaultBinder"]
    assert names(setup, "queueSort") == ["Everywhere"]
    assert names(setup, "filter")[-1] == names(setup, "score")[-1] == "Everywhere"


def test_two_given_plugins_that_sort_the_queue_are_refused() -> None:
    Path("a.py").write_text(EVERYWHERE)
    Path("b.py").write_text(EVERYWHERE.replace('"Everywhere"', '"Other"'))
    with pytest.raises(UserError, match=r"^b\.py:2: Everywhere and Other both sort the queue, but only one"):
        set_up(plugins=["a.py", "b.py"])
