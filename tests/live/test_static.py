"""`longshore static` on the real control plane: the node of a pod, or why it has none."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from tests.live.pods import condition, create, events, placed, pods
from tests.live.static import (
    NAME,
    Static,
    install,
    key,
    label,
    node_of,
    one_pass,
    pinned,
    running,
    stateful_set,
)
from tests.waiting import eventually

from longshore.dev import ControlPlane
from longshore.dev.fixtures import Repetitions
from longshore.pin.labels import legacy_key, pin_key


@pytest.fixture(scope="module")
def other_flags(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Static]:
    """Run it with every switch different from the default."""
    flags = ("--random", "--no-legacy-labels", "--respect-taints", "--low-cardinality")
    folder = tmp_path_factory.mktemp("other-flags")
    kubeconfig = install(control_plane)
    with running(folder, "--name", "other", *flags, kubeconfig=kubeconfig) as scheduler:
        scheduler.wait_for_line("ready")
        yield scheduler


def for_other(name: str) -> dict[str, object]:
    pod = pinned(name)
    pod["spec"]["schedulerName"] = "other"
    return pod


def message(plane: ControlPlane, namespace: str, name: str) -> str:
    """Wait for a condition on the pod, and return its message."""
    eventually(lambda: pods(plane, namespace)[name], lambda found: condition(found).get("message"))
    text: str = condition(pods(plane, namespace)[name])["message"]
    return text


def test_a_stateful_set_follows_its_labels_whatever_their_value(
    control_plane: ControlPlane, namespace: str, nodes: list[str], static: Static
) -> None:
    label(control_plane, nodes[0], f"{key(namespace, 'shop-0')}=")
    create(control_plane, namespace, stateful_set("shop", replicas=2))
    eventually(lambda: node_of(control_plane, namespace, "shop-0"), lambda found: found == nodes[0])
    missing = f"no node is labeled {key(namespace, 'shop-1')}."
    assert missing in message(control_plane, namespace, "shop-1")
    eventually(lambda: events(control_plane, namespace, "shop-1"))
    [told] = events(control_plane, namespace, "shop-1")
    assert told["reason"] == "FailedScheduling"
    assert missing in told["note"]
    assert condition(pods(control_plane, namespace)["shop-1"])["reason"] == "Unschedulable"

    label(control_plane, nodes[1], f"{key(namespace, 'shop-1')}=whatever")
    static.wait_for_line(f"INFO - Pod shop-1 scheduled on node {nodes[1]}")
    assert node_of(control_plane, namespace, "shop-1") == nodes[1]
    eventually(lambda: events(control_plane, namespace, "shop-1"), lambda found: len(found) == 2)
    assert {e["reason"] for e in events(control_plane, namespace, "shop-1")} == {
        "FailedScheduling",
        "Scheduled",
    }


def test_the_same_name_in_two_namespaces_is_two_pods(
    control_plane: ControlPlane, namespace: str, nodes: list[str], static: Static
) -> None:
    other = f"{namespace}-other"
    control_plane.create_namespace(other)
    label(control_plane, nodes[0], f"{key(namespace, 'twin')}=")
    for each in (other, namespace):
        create(control_plane, each, pinned("twin"))
    eventually(lambda: node_of(control_plane, namespace, "twin"), lambda found: found == nodes[0])
    assert key(other, "twin") in message(control_plane, other, "twin")
    label(control_plane, nodes[1], f"{key(other, 'twin')}=")
    eventually(lambda: node_of(control_plane, other, "twin"), lambda found: found == nodes[1])
    control_plane.delete_namespace(other)


def test_a_label_that_moves_moves_no_pod_until_it_comes_back(
    control_plane: ControlPlane, namespace: str, nodes: list[str], static: Static
) -> None:
    label(control_plane, nodes[0], f"{key(namespace, 'db-0')}=a")
    create(control_plane, namespace, stateful_set("db", replicas=1))
    eventually(lambda: node_of(control_plane, namespace, "db-0"), lambda found: found == nodes[0])
    before = pods(control_plane, namespace)["db-0"]["metadata"]["uid"]
    label(control_plane, nodes[0], f"{key(namespace, 'db-0')}-")
    label(control_plane, nodes[1], f"{key(namespace, 'db-0')}=a")
    # Pods that come after the labels were seen are bound, and this one is still where it was.
    label(control_plane, nodes[1], f"{key(namespace, 'later')}=")
    create(control_plane, namespace, pinned("later"))
    eventually(lambda: node_of(control_plane, namespace, "later"), lambda found: found == nodes[1])
    there = pods(control_plane, namespace)["db-0"]
    assert (there["metadata"]["uid"], there["spec"]["nodeName"]) == (before, nodes[0])
    control_plane.kubectl("delete", "pod", "db-0", "-n", namespace)
    eventually(lambda: node_of(control_plane, namespace, "db-0"), lambda found: found == nodes[1])


# The older form of the label, without the namespace. It counts in all of them: each test has its own name.


def test_the_older_label_counts_with_one_warning(
    control_plane: ControlPlane, namespace: str, nodes: list[str], static: Static
) -> None:
    older = legacy_key(NAME, "older")
    label(control_plane, nodes[2], f"{older}=whatever")
    create(control_plane, namespace, pinned("older"))
    eventually(lambda: node_of(control_plane, namespace, "older"), lambda found: found == nodes[2])
    [warning] = [line for line in static.lines if older in line]
    assert f"WARNING - Label {older} of node {nodes[2]} does not name a namespace: use " in warning
    assert f"rf.scheduler.{NAME}.NAMESPACE/older" in warning


def test_the_older_label_never_wins_over_the_newer(
    control_plane: ControlPlane, namespace: str, nodes: list[str], static: Static
) -> None:
    label(control_plane, nodes[0], f"{legacy_key(NAME, 'both')}=force")
    label(control_plane, nodes[1], f"{key(namespace, 'both')}=")
    create(control_plane, namespace, pinned("both"))
    eventually(lambda: node_of(control_plane, namespace, "both"), lambda found: found == nodes[1])
    assert not any(legacy_key(NAME, "both") in line for line in static.lines)


def test_the_older_label_does_not_count_if_switched_off(
    control_plane: ControlPlane, namespace: str, nodes: list[str], other_flags: Static
) -> None:
    label(control_plane, nodes[0], f"{legacy_key('other', 'old')}=")
    create(control_plane, namespace, for_other("old"))
    assert pin_key("other", namespace, "old") in message(control_plane, namespace, "old")
    assert node_of(control_plane, namespace, "old") == ""


# Several labeled nodes.


def come_back(plane: ControlPlane, namespace: str, name: str) -> str:
    """Delete the pod, and wait until its StatefulSet has made another that has a node."""
    gone = pods(plane, namespace)[name]["metadata"]["uid"]
    plane.kubectl("delete", "pod", name, "-n", namespace)

    back = eventually(
        lambda: pods(plane, namespace).get(name),
        lambda now: now is not None and now["metadata"]["uid"] != gone and "nodeName" in now["spec"],
    )
    assert back is not None
    return str(back["spec"]["nodeName"])


def test_of_two_labeled_nodes_it_is_always_the_same(
    control_plane: ControlPlane, namespace: str, nodes: list[str], static: Static, repetitions: Repetitions
) -> None:
    for node in nodes[1:]:
        label(control_plane, node, f"{key(namespace, 'web-0')}=")
    create(control_plane, namespace, stateful_set("web", replicas=1))
    eventually(lambda: node_of(control_plane, namespace, "web-0"), lambda found: found == nodes[1])
    # Even when one joins them whose name comes first.
    label(control_plane, nodes[0], f"{key(namespace, 'web-0')}=")
    seen = {come_back(control_plane, namespace, "web-0") for _ in range(repetitions(full=20))}
    assert seen == {nodes[1]}


def test_with_random_choice_both_labeled_nodes_occur(
    control_plane: ControlPlane, namespace: str, nodes: list[str], other_flags: Static
) -> None:
    for node in nodes[:2]:
        label(control_plane, node, f"{pin_key('other', namespace, 'web-0')}=")
    several = stateful_set("web", replicas=1)
    several["spec"]["template"]["spec"]["schedulerName"] = "other"
    create(control_plane, namespace, several)
    eventually(lambda: node_of(control_plane, namespace, "web-0"), lambda found: found in nodes[:2])
    seen = {node_of(control_plane, namespace, "web-0")}
    for time in count():
        if seen == set(nodes[:2]):
            return
        assert time < 50, seen
        seen.add(come_back(control_plane, namespace, "web-0"))


# Pods that cannot be bound.


def test_gated_and_ending_pods_are_left_alone(
    control_plane: ControlPlane, namespace: str, nodes: list[str], static: Static
) -> None:
    gated, ending = pinned("gated"), pinned("ending", finalizers=["example.com/hold"])
    gated["spec"]["schedulingGates"] = [{"name": "example.com/wait"}]
    create(control_plane, namespace, gated, ending)
    control_plane.kubectl("delete", "pod", "ending", "-n", namespace, "--wait=false")
    names = ("gated", "ending", "plain")
    label(control_plane, nodes[0], *(f"{key(namespace, name)}=force" for name in names))
    create(control_plane, namespace, pinned("plain"))
    eventually(lambda: node_of(control_plane, namespace, "plain"), lambda found: found == nodes[0])
    assert set(placed(control_plane, namespace)) == {f"{namespace}/plain"}

    patch = ("patch", "-n", namespace, "--type=json", "-p")
    control_plane.kubectl(*patch, '[{"op":"remove","path":"/spec/schedulingGates"}]', "pod", "gated")
    eventually(lambda: node_of(control_plane, namespace, "gated"), lambda found: found == nodes[0])
    assert node_of(control_plane, namespace, "ending") == ""
    control_plane.kubectl(*patch, '[{"op":"remove","path":"/metadata/finalizers"}]', "pod", "ending")
    assert static.counts("schedule_request_failure_total", namespace=namespace) == 0


def test_a_name_too_long_for_a_label_is_reported(
    control_plane: ControlPlane, namespace: str, static: Static
) -> None:
    name = "w" * 64
    create(control_plane, namespace, pinned(name))
    eventually(lambda: events(control_plane, namespace, name))
    [told] = events(control_plane, namespace, name)
    assert "cannot be expressed as a label: the pod's name has 64 characters" in told["note"]


# The reports of a pass, and the metrics.


def test_one_pass_binds_what_it_can_and_exits_with_0(
    control_plane: ControlPlane, namespace: str, nodes: list[str], tmp_path: Path
) -> None:
    """The pass has its own scheduler name, because the daemon binds its pods at once."""
    label(control_plane, nodes[0], f"{pin_key('pass', namespace, 'web-0')}=")
    for name in ("web-0", "web-1"):
        pod = pinned(name)
        pod["spec"]["schedulerName"] = "pass"
        create(control_plane, namespace, pod)
    kubeconfig = str(install(control_plane))
    done = one_pass(tmp_path, "-vv", SCHED_NAME="pass", KUBECONFIG=kubeconfig)
    assert done.returncode == 0, done.stderr
    assert f"INFO - Pod web-0 scheduled on node {nodes[0]}\n" in done.stderr
    assert placed(control_plane, namespace) == {f"{namespace}/web-0": nodes[0]}
    # It wrote its conditions before it ended.
    assert (
        pin_key("pass", namespace, "web-1") in condition(pods(control_plane, namespace)["web-1"])["message"]
    )
    assert [e["reason"] for e in events(control_plane, namespace, "web-1")] == ["FailedScheduling"]
    assert one_pass(tmp_path, SCHED_NAME="pass", KUBECONFIG=kubeconfig).stderr == ""


def test_metrics_count_each_pod_on_every_path(
    control_plane: ControlPlane, namespace: str, nodes: list[str], static: Static
) -> None:
    label(control_plane, nodes[0], f"{key(namespace, 'counted')}=")
    create(control_plane, namespace, pinned("counted"))
    eventually(
        lambda: static.counts("schedule_request_success_total", namespace=namespace), lambda found: found == 1
    )
    labels = {"namespace": namespace, "pod": "counted", "node": nodes[0], "scheduler": NAME}
    for path in ("/", "/metrics", "/any/path?at=all"):
        written = ",".join(f'{name}="{value}"' for name, value in sorted(labels.items()))
        page = static.page(path)
        assert f"schedule_request_total{{{written}}} 1.0\n" in page
        assert f"schedule_request_success_total{{{written}}} 1.0\n" in page
        assert f"schedule_request_created{{{written}}} 1." in page
        assert "# TYPE schedule_request_failure_total counter\n" in page
        assert "process_resident_memory_bytes " in page


def test_with_few_labels_metrics_name_no_pods(
    control_plane: ControlPlane, namespace: str, nodes: list[str], other_flags: Static
) -> None:
    label(control_plane, nodes[0], *(f"{pin_key('other', namespace, name)}=" for name in ("one", "two")))
    create(control_plane, namespace, for_other("one"), for_other("two"))
    eventually(lambda: placed(control_plane, namespace), lambda found: len(found) == 2)
    series = other_flags.series("schedule_request_total")
    found = [(labels, value) for labels, value in series if labels["namespace"] == namespace]
    assert found == [({"scheduler": "other", "namespace": namespace}, 2.0)]


def test_taints_count_only_if_they_are_to_be_respected(
    control_plane: ControlPlane, namespace: str, nodes: list[str], static: Static, other_flags: Static
) -> None:
    taint = "node-role.kubernetes.io/control-plane:NoSchedule"
    control_plane.kubectl("taint", "node", nodes[2], taint)
    label(
        control_plane,
        nodes[2],
        f"{key(namespace, 'careless')}=",
        f"{pin_key('other', namespace, 'careful')}=",
    )
    create(control_plane, namespace, pinned("careless"), for_other("careful"))
    eventually(lambda: node_of(control_plane, namespace, "careless"), lambda found: found == nodes[2])
    assert "1 node(s) had untolerated taint(s)" in message(control_plane, namespace, "careful")
    control_plane.kubectl("taint", "node", nodes[2], f"{taint}-")
    eventually(lambda: node_of(control_plane, namespace, "careful"), lambda found: found == nodes[2])
