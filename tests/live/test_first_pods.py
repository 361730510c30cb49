"""`longshore run` on the real control plane, with pods created by kubectl."""

import json
import subprocess
import sys
import time
from collections import Counter

from tests.live.conftest import StartScheduler
from tests.live.pods import condition, create, manifest, placed, pods, wait_until_running
from tests.waiting import eventually

from longshore.dev import ControlPlane
from longshore.dev.fixtures import OwnCluster


def test_pods_are_bound_and_run_and_the_room_of_nodes_is_respected(
    own_cluster: OwnCluster, start_scheduler: StartScheduler
) -> None:
    plane = own_cluster(nodes=3)  # 8 cores each
    start_scheduler(plane)
    create(plane, "default", *(manifest(f"big-{n}", cpu="3") for n in range(8)))
    wait_until_running(plane, "default", 6)
    assert Counter(placed(plane, "default").values()) == {"node-0": 2, "node-1": 2, "node-2": 2}

    left = [pod for pod in pods(plane, "default").values() if pod["status"]["phase"] == "Pending"]
    assert len(left) == 2
    for pod in left:
        told = condition(pod)
        assert (told["status"], told["reason"]) == ("False", "Unschedulable")
        assert told["message"] == (
            "0/3 nodes are available: 3 Insufficient cpu. no new claims to deallocate, "
            "preemption: 0/3 nodes are available: 3 No preemption victims found for incoming pod."
        )
    events = json.loads(plane.kubectl("get", "events.events.k8s.io", "-o", "json"))["items"]
    reasons = Counter(event["reason"] for event in events if event["reportingController"] == "longshore")
    assert reasons == {"Scheduled": 6, "FailedScheduling": 2}

    # Room made by a deletion is used at once.
    gone = next(iter(placed(plane, "default"))).removeprefix("default/")
    plane.kubectl("delete", "pod", gone, "--now")
    wait_until_running(plane, "default", 6)


def test_pods_of_other_schedulers_are_left_alone(
    own_cluster: OwnCluster, start_scheduler: StartScheduler
) -> None:
    plane = own_cluster(nodes=1)
    start_scheduler(plane)
    gated = manifest("gated")
    gated["spec"]["schedulingGates"] = [{"name": "example.com/wait"}]
    create(plane, "default", manifest("theirs", scheduler="another"), gated, manifest("ours"))
    wait_until_running(plane, "default", 1)
    assert set(placed(plane, "default")) == {"default/ours"}
    plane.kubectl(
        "patch", "pod", "gated", "--type=json", '-p=[{"op":"remove","path":"/spec/schedulingGates"}]'
    )
    wait_until_running(plane, "default", 2)


def test_node_added_later_takes_the_pods_that_waited(
    own_cluster: OwnCluster, start_scheduler: StartScheduler
) -> None:
    plane = own_cluster(nodes=0)
    start_scheduler(plane)
    create(plane, "default", manifest("early"))
    eventually(
        lambda: pods(plane, "default")["early"],
        lambda pod: condition(pod).get("reason") == "Unschedulable",
    )
    plane.add_nodes(1)
    wait_until_running(plane, "default", 1)


def test_clean_stop_releases_the_lease_and_the_next_takes_over(
    own_cluster: OwnCluster, start_scheduler: StartScheduler
) -> None:
    plane = own_cluster(nodes=2)
    first = start_scheduler(plane)
    create(plane, "default", manifest("one"))
    wait_until_running(plane, "default", 1)
    start_scheduler(plane)
    create(plane, "default", manifest("two"))
    wait_until_running(plane, "default", 2)
    assert first.stop() == 0
    stopped = time.monotonic()
    create(plane, "default", manifest("three"))
    wait_until_running(plane, "default", 3)
    # Far below the 15 seconds of a lease that is not released. The rest is for KWOK.
    assert time.monotonic() - stopped < 12


def test_api_server_restarted_while_pods_are_scheduled(
    own_cluster: OwnCluster, start_scheduler: StartScheduler
) -> None:
    plane = own_cluster(nodes=4)
    scheduler = start_scheduler(plane)
    create(plane, "default", manifest("first"))
    wait_until_running(plane, "default", 1)
    create(plane, "default", *(manifest(f"before-{n}") for n in range(30)))
    scheduler.may_be_refused = True
    plane.api_server.kill()
    plane.api_server.restart()
    create(plane, "default", *(manifest(f"after-{n}") for n in range(30)))
    wait_until_running(plane, "default", 61, within=60)
    assert scheduler.process.poll() is None


def test_bad_starts_are_one_clear_line(control_plane: ControlPlane, namespace: str) -> None:
    nobody = control_plane.service_account("nobody", namespace=namespace)
    for arguments, words in (
        (["--kubeconfig", "/no/such/file"], "/no/such/file"),
        (["--kubeconfig", str(nobody)], "the API server refuses us"),
        (["--kubeconfig", str(nobody), "--context", "elsewhere"], "elsewhere"),
        (["--kubeconfig", str(nobody), "--scheduler-name", ""], "--scheduler-name is empty"),
    ):
        done = subprocess.run(
            [sys.executable, "-m", "longshore", "run", *arguments],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 1, done.stderr
        assert done.stderr.startswith("error: ")
        assert words in done.stderr
        assert done.stderr.count("\n") == 1
