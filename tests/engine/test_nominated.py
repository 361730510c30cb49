"""Nominated pods: they are tried on their node first, and other pods leave them room."""

import pytest
from tests.engine.stage import Stage, room

from longshore.api import Change
from longshore.testing import PodBuilder, pod


def waiting(name: str, *, priority: int = 0, cpu: str = "2") -> PodBuilder:
    return pod(name).requests(cpu=cpu).priority(priority)


def stage_with_promise() -> Stage:
    """Return a stage with two cores on n1, to which a gated pod is nominated."""
    stage = Stage(defaults=True)
    stage.create(room("n1", "2"), waiting("nominee", priority=10).nominated("n1").gates("wait"))
    stage.run()
    return stage


@pytest.mark.parametrize(("priority", "node"), [(5, ""), (10, ""), (11, "n1")])
def test_room_of_a_nominated_pod_is_kept_from_lower_and_equal_priorities_only(
    priority: int, node: str
) -> None:
    stage = stage_with_promise()
    stage.create(waiting("other", priority=priority).never_preempting())
    stage.run()
    assert stage.node_of("other") == node


def test_a_pod_that_fits_next_to_the_nominated_one_gets_the_node() -> None:
    stage = Stage(defaults=True)
    stage.create(room("n1", "3"), waiting("nominee", priority=10).nominated("n1").gates("wait"))
    stage.create(waiting("small", cpu="1"), at=1.0)
    stage.run()
    assert stage.node_of("small") == "n1"


def test_the_message_counts_the_node_for_the_plugin_that_refused_it_with_the_nominated_pod() -> None:
    stage = stage_with_promise()
    stage.create(waiting("other").never_preempting())
    stage.run()
    assert stage.message("other").startswith("0/1 nodes are available: 1 Insufficient cpu. ")


def test_affinity_to_a_nominated_pod_alone_is_not_enough() -> None:
    stage = Stage(defaults=True)
    nominee = waiting("nominee", priority=10, cpu="1").labels(app="db").nominated("n1")
    stage.create(room("n1", "4"), nominee.gates("wait"))
    stage.create(waiting("web", cpu="1").affinity_to("kubernetes.io/hostname", app="db"), at=1.0)
    stage.run()
    assert stage.node_of("web") == ""
    assert "didn't match pod affinity rules" in stage.message("web")


def test_anti_affinity_to_a_nominated_pod_counts() -> None:
    stage = Stage(defaults=True)
    nominee = waiting("nominee", priority=10, cpu="1").labels(app="db").nominated("n1")
    stage.create(room("n1", "4"), nominee.gates("wait"))
    stage.create(waiting("web", cpu="1").anti_affinity_to("kubernetes.io/hostname", app="db"), at=1.0)
    stage.run()
    assert stage.node_of("web") == ""
    assert "didn't match pod anti-affinity rules" in stage.message("web")


def test_a_host_port_of_a_nominated_pod_is_taken() -> None:
    stage = Stage(defaults=True)
    nominee = waiting("nominee", priority=10, cpu="1").host_port(80).nominated("n1")
    stage.create(room("n1", "4"), nominee.gates("wait"))
    stage.create(waiting("web", cpu="1").host_port(80), at=1.0)
    stage.run()
    assert stage.node_of("web") == ""


def test_a_nominated_pod_gets_its_node_without_scores() -> None:
    stage = Stage(defaults=True)
    stage.create(room("n1", "4"), room("n2", "64"), pod("old").requests(cpu="1").on("n1"))
    stage.create(waiting("hinted").nominated("n1"), waiting("free"))
    stage.run()
    assert (stage.node_of("hinted"), stage.node_of("free")) == ("n1", "n2")


def test_a_nominated_pod_that_does_not_fit_on_its_node_goes_elsewhere() -> None:
    stage = Stage(defaults=True)
    stage.create(room("n1", "1"), room("n2", "4"), waiting("hinted").nominated("n1"))
    stage.run()
    assert stage.node_of("hinted") == "n2"


def test_a_nomination_to_a_node_that_does_not_exist_is_ignored() -> None:
    stage = Stage(defaults=True)
    stage.create(room("n1", "4"), waiting("hinted").nominated("no-such-node"))
    stage.run()
    assert stage.node_of("hinted") == "n1"


def test_when_a_nominated_pod_is_deleted_pods_that_left_it_room_are_tried() -> None:
    stage = stage_with_promise()
    stage.create(waiting("other").never_preempting())
    stage.run()
    stage.delete(waiting("nominee"), at=stage.now + 5.0)
    stage.run()
    assert stage.node_of("other") == "n1"


def test_pods_of_one_shape_notice_a_nomination_that_came_between_them() -> None:
    stage = Stage(defaults=True)
    stage.create(room("n1", "4"))
    stage.create(waiting("first"), at=1.0)
    stage.create(waiting("nominee", priority=10).nominated("n1").gates("wait"), at=2.0)
    stage.create(waiting("second").never_preempting(), at=3.0)
    stage.run()
    assert (stage.node_of("first"), stage.node_of("second")) == ("n1", "")


# Nominations in the status of pods.


def stage_with_two_nodes() -> Stage:
    """Return a stage with two cores on each of two nodes; a gated pod is nominated to n1."""
    stage = Stage(defaults=True)
    stage.create(room("n1", "2"), room("n2", "2"))
    stage.create(waiting("nominee", priority=10).nominated("n1").gates("wait"))
    stage.run()
    return stage


def renominate(stage: Stage, node: str, *, at: float | None = None) -> None:
    stage.update(waiting("nominee", priority=10).gates("wait").nominated(node), at=at)


def test_a_nomination_follows_the_status_of_the_pod() -> None:
    stage = stage_with_two_nodes()
    renominate(stage, "n2")
    stage.create(waiting("other"), waiting("another").never_preempting(), at=1.0)
    stage.run()
    assert (stage.node_of("other"), stage.node_of("another")) == ("n1", "")


def test_a_nomination_that_was_removed_keeps_no_room() -> None:
    stage = stage_with_two_nodes()
    renominate(stage, "")
    stage.create(waiting("other"), waiting("another"), at=1.0)
    stage.run()
    assert {stage.node_of("other"), stage.node_of("another")} == {"n1", "n2"}
    assert not stage.engine.cluster.nominations


def test_a_status_without_a_nomination_leaves_our_own_in_place() -> None:
    stage = Stage(defaults=True)
    low = pod("low").requests(cpu="2").on("n1").scheduler("other")
    stage.create(room("n1", "2"), low)
    stage.run()
    vip = waiting("vip", priority=10)
    stage.engine.receive(Change(None, vip), now=0.0)
    stage.engine.advance(now=0.0)
    assert stage.engine.cluster.nominations.node_of(vip.metadata.uid) == "n1"
    # The watch has not shown the nomination yet.
    stage.engine.receive(Change(vip, vip.labels(late="yes")), now=0.1)
    assert stage.engine.cluster.nominations.node_of(vip.metadata.uid) == "n1"


@pytest.mark.parametrize(("priority", "tries"), [(5, 2), (10, 2), (11, 1)])
@pytest.mark.parametrize("how", ["moved", "taken back", "deleted", "being deleted"])
def test_when_a_nomination_is_removed_pods_that_left_it_room_are_tried(
    how: str, priority: int, tries: int
) -> None:
    stage = Stage(defaults=True)
    nominee = waiting("nominee", priority=10).gates("wait").nominated("n1")
    stage.create(room("n1", "2"), room("n2", "1"), nominee)
    stage.create(waiting("other", priority=priority, cpu="3").never_preempting(), at=1.0)
    stage.run(until=4.0)
    match how:
        case "moved":
            renominate(stage, "n2", at=5.0)
        case "taken back":
            renominate(stage, "", at=5.0)
        case "deleted":
            stage.delete(nominee, at=5.0)
        case "being deleted":
            stage.update(nominee.deleting(), at=5.0)
    stage.run(until=6.0)
    # It fits nowhere, with or without the nomination.
    assert len(stage.told("other")) == tries


def test_a_pod_is_not_woken_by_the_removal_of_its_own_nomination() -> None:
    stage = Stage(defaults=True)
    other = waiting("other", cpu="3").never_preempting()
    stage.create(room("n1", "2"), other.nominated("n1"))
    stage.run(until=5.0)
    told = len(stage.told("other"))
    stage.update(other, at=6.0)
    stage.run(until=8.0)
    assert len(stage.told("other")) == told


def test_other_pods_see_the_newest_version_of_a_nominated_pod() -> None:
    stage = Stage(defaults=True)
    nominee = waiting("nominee", priority=10, cpu="1").nominated("n1").gates("wait")
    stage.create(room("n1", "4"), nominee)
    stage.update(nominee.labels(app="db"), at=1.0)
    stage.create(waiting("web", cpu="1").anti_affinity_to("kubernetes.io/hostname", app="db"), at=2.0)
    stage.run()
    assert stage.node_of("web") == ""
