"""The table of extension points, from which the rest of Longshore is derived."""

import itertools
from typing import Any

import pytest

from longshore.cluster import PodInfo
from longshore.config import parse
from longshore.config.registry import register
from longshore.engine.decision.plugin_groups import PluginGroups
from longshore.framework import extension_points
from longshore.framework.extension_points import POINTS, Method, Point, points_of
from longshore.framework.points import Plugin
from longshore.framework.profile import Profile
from longshore.live.time_limit import TimeLimit
from longshore.serve.metrics.histogram import Histogram
from longshore.serve.metrics.plugin_timing import Sampler
from longshore.testing import pod

AUDIT: Point[Any] = Point("audit", (Method("audit", "Audit"),), by_concern=True)
FILE = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
profiles: [{plugins: {audit: {enabled: [{name: Auditor}]}}}]
"""


class Auditor:
    name = "Auditor"
    patient = True

    def concerns(self, pod: PodInfo) -> bool:
        return "audited" in pod.labels

    def audit(self) -> str:
        while not self.patient:
            pass
        return "fine"


@pytest.fixture(autouse=True)
def made_up_point(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thirteenth extension point, which only the table contains."""
    monkeypatch.setitem(extension_points.POINTS, AUDIT.name, AUDIT)


def profile(plugin: Plugin) -> Profile:
    return Profile.of("longshore", {AUDIT.name: [(plugin, 0)]})


def test_the_points_have_kube_schedulers_names_and_order() -> None:
    assert tuple(POINTS)[:-1] == (
        "preEnqueue",
        "queueSort",
        "preFilter",
        "filter",
        "postFilter",
        "preScore",
        "score",
        "reserve",
        "permit",
        "preBind",
        "bind",
        "postBind",
    )


def test_a_plugin_with_the_method_of_a_new_point_belongs_to_it() -> None:
    assert points_of(Auditor) == {"audit"}
    assert register(Auditor).points == {"audit"}


def test_a_configuration_enables_plugins_at_a_new_point() -> None:
    loaded = parse(FILE, source="scheduler.yaml", known={"Auditor": {"audit"}})
    [only] = loaded.configuration.profiles
    assert [each.name for each in only.points["audit"]] == ["Auditor"]


def test_a_profile_knows_the_plugins_of_a_new_point() -> None:
    auditor = Auditor()
    assert profile(auditor).at(AUDIT) == (auditor,)
    assert profile(auditor).enabled["audit"] == (("Auditor", 0),)


def test_a_plugin_of_a_new_point_can_say_which_pods_concern_it() -> None:
    asked: list[PodInfo] = []

    class Asked(Auditor):
        def concerns(self, pod: PodInfo) -> bool:
            asked.append(pod)
            return True

    web = PodInfo.of(pod("web"))
    PluginGroups(profile(Asked())).about(web)
    assert asked == [web]


def test_a_method_of_a_new_point_has_the_time_limit() -> None:
    limit = TimeLimit(0.02)
    auditor = Auditor()
    auditor.patient = False
    try:
        with pytest.raises(TimeoutError, match="took longer than"):
            limit.limited(auditor).audit()  # type: ignore[attr-defined]
    finally:
        limit.close()


def test_a_method_of_a_new_point_is_measured() -> None:
    histograms: dict[tuple[str, str, str], Histogram] = {}
    auditor = Auditor()
    sampler = Sampler(profile(auditor), histograms, itertools.count().__next__)
    end = sampler.begin(1)
    auditor.audit()
    end()
    assert [*histograms] == [("Auditor", "Audit", "Success")]
    assert [*sampler.points] == [("Audit", "Success")]
