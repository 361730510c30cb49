"""`longshore explain` on the real control plane, next to a scheduler that keeps records of its decisions."""

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.live.conftest import MANIFEST, Scheduler
from tests.live.pods import condition, create, manifest, placed, pods
from tests.live.test_serving import port_of
from tests.waiting import eventually

from longshore.dev import ControlPlane

pytestmark = pytest.mark.control_plane

GET_PODS = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
LIST_SOME = {"apiGroups": [""], "resources": ["pods", "nodes", "namespaces"], "verbs": ["list"]}


class Stage(NamedTuple):
    plane: ControlPlane
    # The port of the scheduler.
    url: str
    # Kubeconfigs with the right to read everything, pods and nodes, only pods, and nothing.
    reader: Path
    some: Path
    pods_only: Path
    stranger: Path


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Two nodes of 8 cores, a pod on one of them, and one that is too large for either."""
    folder = tmp_path_factory.mktemp("explain")
    with ControlPlane.start(nodes=2, kwok=False, controller_manager=False) as plane:
        plane.kubectl("apply", "-f", str(MANIFEST))
        kubeconfig = plane.service_account("longshore", namespace="kube-system")
        create(plane, "default", manifest("huge", cpu="99"), manifest("web", cpu="2"))
        log = folder / "scheduler.log"
        run = [sys.executable, "-m", "longshore", "run", "--kubeconfig", str(kubeconfig)]
        with log.open("w") as stderr:
            process = subprocess.Popen(
                [*run, "--metrics-port=0", "--bind-address=127.0.0.1"], stderr=stderr, text=True
            )
        try:
            port = port_of(Scheduler(process, log))
            eventually(lambda: placed(plane, "default"), lambda found: "default/web" in found)
            eventually(lambda: pods(plane, "default")["huge"], condition)
            yield Stage(
                plane,
                f"http://127.0.0.1:{port}",
                reader=plane.service_account("reader", cluster_role="longshore"),
                some=plane.service_account("some", rules=[GET_PODS, LIST_SOME]),
                pods_only=plane.service_account("pods-only", rules=[GET_PODS]),
                stranger=plane.service_account("stranger"),
            )
            # The manifest gives the scheduler the rights to ask about others.
            assert "cannot authorize a request" not in log.read_text()
        finally:
            process.kill()
            process.wait()


def explain(kubeconfig: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "longshore", "explain", "--kubeconfig", str(kubeconfig), *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"KUBECONFIG": "/nonexistent"},
    )


def as_json(kubeconfig: Path, *arguments: str) -> dict[str, Any]:
    done = explain(kubeconfig, *arguments, "-o", "json")
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def the_one_line(done: "subprocess.CompletedProcess[str]") -> str:
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    return done.stderr


def test_a_pending_pod(stage: Stage) -> None:
    done = explain(stage.reader, "huge")
    assert done.stderr == ""
    assert done.stdout.startswith(
        "pod default/huge: pending; scheduler longshore\n  Unschedulable: 0/2 nodes"
    )
    assert "\n  0 of 2 nodes are feasible\n" in done.stdout
    assert "\n  2 by NodeResourcesFit: Insufficient cpu (node-0, node-1)\n" in done.stdout


def test_a_bound_pod(stage: Stage) -> None:
    now = as_json(stage.reader, "default/web")["now"]
    node = placed(stage.plane, "default")["default/web"]
    assert (now["pod"]["node"], now["rank"]) == (node, 1)
    assert now["explanation"]["feasible"] == ["node-0", "node-1"]
    assert len(set(now["explanation"]["totals"].values())) == 1


def test_kinds_that_may_not_be_read_are_named(stage: Stage) -> None:
    warnings = as_json(stage.some, "web")["now"]["warnings"]
    assert len(warnings) == 12
    assert warnings[0].startswith("services left out: services is forbidden")


def test_from_a_saved_cluster_the_answer_is_the_same(stage: Stage, tmp_path: Path) -> None:
    saved = tmp_path / "cluster.jsonl"
    live = as_json(stage.reader, "huge", "--save", str(saved))
    assert as_json(stage.stranger, "huge", "--record", str(saved)) == live


def test_the_decision_about_a_bound_pod_is_shown(stage: Stage) -> None:
    (decision,) = as_json(stage.reader, "web", "--scheduler", stage.url)["decisions"]
    assert decision["node"] == placed(stage.plane, "default")["default/web"]
    assert decision["uid"] == pods(stage.plane, "default")["web"]["metadata"]["uid"]
    assert (decision["feasible"], decision["nodes"], decision["ties"]) == (2, 2, 2)
    # Only the pod itself was added since.
    now = as_json(stage.reader, "web")["now"]
    assert decision["scores"] == now["explanation"]["scores"][decision["node"]]
    assert decision["total"] == now["explanation"]["totals"][decision["node"]]


def test_the_recorded_decision_is_shown_above_the_present_answer(stage: Stage) -> None:
    text = explain(stage.reader, "huge", "--scheduler", stage.url).stdout
    decided, now = text.index("as decided at "), text.index("as the cluster is now:")
    assert decided < now
    assert "\n  2 rejected by NodeResourcesFit: Insufficient cpu\n" in text[decided:now]


def test_a_user_with_the_right_to_get_the_pod_sees_its_decision(stage: Stage) -> None:
    done = explain(stage.pods_only, "web", "--scheduler", stage.url)
    assert done.returncode == 0
    assert done.stdout.startswith("pod default/web\n\nas decided at ")
    assert "as the cluster is now" not in done.stdout
    assert done.stderr.startswith("warning: nodes left out: nodes is forbidden")


def test_a_user_without_the_right_to_the_pod_is_refused_by_the_scheduler(stage: Stage) -> None:
    line = the_one_line(explain(stage.stranger, "web", "--scheduler", stage.url))
    assert 'user "system:serviceaccount:default:stranger" cannot get pod web in namespace default' in line


def test_a_user_without_the_right_to_the_pod_is_refused_by_the_api_server(stage: Stage) -> None:
    assert 'pods "web" is forbidden' in the_one_line(explain(stage.stranger, "web"))


def test_a_certificate_is_nothing_to_show_to_the_scheduler(stage: Stage) -> None:
    line = the_one_line(explain(stage.plane.kubeconfig, "web", "--scheduler", stage.url))
    assert "the kubeconfig has no token for the scheduler" in line


def test_a_token_is_not_sent_in_the_clear(stage: Stage) -> None:
    line = the_one_line(explain(stage.reader, "web", "--scheduler", "http://scheduler.example:10259"))
    assert "would send your token without encryption" in line


def test_an_unknown_pod_is_one_line(stage: Stage) -> None:
    line = the_one_line(explain(stage.reader, "nothing"))
    assert "pod nothing does not exist in namespace default; -n chooses another namespace" in line


def test_a_server_that_cannot_be_reached_is_one_line(stage: Stage, tmp_path: Path) -> None:
    away = tmp_path / "away.kubeconfig"
    away.write_text(stage.reader.read_text().replace(stage.plane.server, "https://127.0.0.1:1"))
    assert "cannot talk to the API server" in the_one_line(explain(away, "web"))


@pytest.mark.parametrize(
    "headers", [{}, {"Authorization": "Basic YTpi"}, {"Authorization": "Bearer nobodys"}]
)
def test_a_caller_without_a_valid_token_gets_no_record(stage: Stage, headers: dict[str, str]) -> None:
    request = urllib.request.Request(f"{stage.url}/debug/pods/default/web", headers=headers)  # noqa: S310
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=10)  # noqa: S310
    with refused.value as error:
        assert error.code == 401
        assert "default" not in error.read().decode()
