"""`longshore pin` and `longshore unpin` on the real control plane, on nodes that no other test uses."""

import json
import os
import re
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.live.pods import bind, create, manifest, pods, wait_until_running
from tests.waiting import eventually

from longshore.ask.pin_plan import PinOptions
from longshore.ask.pin_writes import pin
from longshore.dev import ControlPlane
from longshore.errors import UserError
from longshore.kube import Client, load
from longshore.kube.errors import ConnectionFailed

LIST_NODES = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}
PATCH_NODES = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["patch"]}
GET_PODS = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
LIST_PODS = {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}
GET_SETS = {"apiGroups": ["apps"], "resources": ["statefulsets"], "verbs": ["get"]}

Done = subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def nodes(control_plane: ControlPlane) -> Iterator[list[str]]:
    """Three nodes. The labels of each test contain the name of its namespace."""
    names = control_plane.add_nodes(3, prefix=f"pin-{secrets.token_hex(3)}-")
    yield names
    control_plane.kubectl("delete", "node", *names)


class Commands:
    """Runs the commands for one namespace, as the administrator or with another kubeconfig."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self.plane, self.namespace = plane, namespace

    def run(
        self, *arguments: str, kubeconfig: Path | None = None, environment: Mapping[str, str] | None = None
    ) -> Done:
        inherited = {name: value for name, value in os.environ.items() if name != "SCHED_NAME"}
        return subprocess.run(
            [sys.executable, "-m", "longshore", *arguments],
            capture_output=True,
            text=True,
            check=False,
            env=inherited
            | {"KUBECONFIG": str(kubeconfig or self.plane.kubeconfig), "COLUMNS": "80"}
            | dict(environment or {}),
        )

    def pin(self, *arguments: str, **more: Any) -> Done:
        return self.run("pin", *arguments, "-n", self.namespace, **more)

    def unpin(self, *arguments: str, **more: Any) -> Done:
        return self.run("unpin", *arguments, "-n", self.namespace, **more)

    def key(self, pod: str, scheduler: str = "rfcustom") -> str:
        return f"rf.scheduler.{scheduler}.{self.namespace}/{pod}"

    def label(self, node: str, key: str, value: str = "") -> None:
        self.plane.kubectl("label", "node", node, f"{key}={value}")

    def pins(self, word: str = "") -> dict[tuple[str, str], str]:
        """Return all labels that contain the word, by default the namespace: values by node and key."""
        listed = self.plane.get("/api/v1/nodes")
        return {
            (node["metadata"]["name"], key): value
            for node in listed["items"]
            for key, value in node["metadata"]["labels"].items()
            if key.startswith("rf.scheduler.") and (word or self.namespace) in key
        }


@pytest.fixture
def commands(control_plane: ControlPlane, namespace: str) -> Commands:
    return Commands(control_plane, namespace)


def as_json(done: Done) -> Any:
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def the_error(done: Done, *, code: int = 1) -> str:
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    return done.stderr


def stateful_set(plane: ControlPlane, namespace: str, nodes: Mapping[str, str], *, replicas: int) -> None:
    """Create a StatefulSet `db`, and bind its first pods to these nodes."""
    pod = manifest("db", scheduler="static", labels={"app": "db"})
    body = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "db"},
        "spec": {
            "replicas": replicas,
            "serviceName": "db",
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": {"app": "db"}},
            "template": {"metadata": {"labels": {"app": "db"}}, "spec": pod["spec"]},
        },
    }
    create(plane, namespace, body)
    wanted = {f"db-{number}" for number in range(replicas)}
    eventually(lambda: pods(plane, namespace), lambda found: wanted <= found.keys(), within=30)
    for name, node in nodes.items():
        bind(plane, namespace, name, node)
    wait_until_running(plane, namespace, len(nodes))


# One pod.


def test_a_pod_that_is_yet_to_come(commands: Commands, nodes: list[str]) -> None:
    done = commands.pin("web-0", nodes[0])
    assert done.stdout == (
        f"{commands.namespace}/web-0 is pinned to {nodes[0]} for scheduler rfcustom\n"
        "  the pod does not exist yet\n"
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert commands.pins() == {(nodes[0], commands.key("web-0")): ""}


def test_a_pin_that_moves_to_another_node(commands: Commands, nodes: list[str]) -> None:
    key = commands.key("web-0")
    commands.label(nodes[0], key)
    commands.label(nodes[1], key, "whatever")
    done = commands.pin("web-0", nodes[2])
    assert f"\n  no longer pinned to {nodes[0]}, {nodes[1]}\n" in done.stdout
    assert commands.pins() == {(nodes[2], key): ""}


def test_a_pin_to_one_more_node_by_force(commands: Commands, nodes: list[str]) -> None:
    key = commands.key("web-0")
    commands.label(nodes[0], key)
    (found,) = as_json(commands.pin("web-0", nodes[1], "--also", "--force", "-o", "json"))["pins"]
    assert (found["alsoOn"], found["takenFrom"], found["force"]) == ([nodes[0]], [], True)
    assert commands.pins() == {(nodes[0], key): "", (nodes[1], key): "force"}


def test_a_pin_that_is_there_already(commands: Commands, nodes: list[str]) -> None:
    commands.label(nodes[0], commands.key("web-0"))
    done = commands.pin("web-0", nodes[0])
    assert f"web-0 was already pinned to {nodes[0]}" in done.stdout


def test_the_environment_names_the_scheduler_of_a_pod_that_names_none(
    commands: Commands, nodes: list[str]
) -> None:
    commands.pin("web-0", nodes[0], environment={"SCHED_NAME": "static"})
    assert commands.pins() == {(nodes[0], commands.key("web-0", "static")): ""}


def test_the_pods_scheduler_takes_precedence_over_the_environment(
    commands: Commands, nodes: list[str]
) -> None:
    create(commands.plane, commands.namespace, manifest("web-0", scheduler="own"))
    done = commands.pin("web-0", nodes[0], environment={"SCHED_NAME": "static"})
    assert commands.pins() == {(nodes[0], commands.key("web-0", "own")): ""}
    assert "no such pod" not in done.stdout


def test_a_pod_of_another_scheduler_than_the_one_that_is_asked_for(
    commands: Commands, nodes: list[str]
) -> None:
    create(commands.plane, commands.namespace, manifest("web-0", scheduler="default-scheduler"))
    done = commands.pin("web-0", nodes[0], "--name", "static")
    assert done.returncode == 0
    assert done.stderr.startswith(
        f"warning: {commands.namespace}/web-0 has schedulerName default-scheduler, "
        "so scheduler static ignores them"
    )
    assert commands.pins() == {(nodes[0], commands.key("web-0", "static")): ""}


def test_a_pod_that_runs_elsewhere_on_a_node_that_is_cordoned(commands: Commands, nodes: list[str]) -> None:
    stateful_set(commands.plane, commands.namespace, {"db-0": nodes[0]}, replicas=1)
    commands.plane.kubectl("cordon", nodes[1])
    try:
        config = str(commands.plane.kubeconfig)
        done = commands.pin("db-0", nodes[1], "--kubeconfig", config)
    finally:
        commands.plane.kubectl("uncordon", nodes[1])
    moves, cordoned = done.stderr.splitlines()
    assert moves.endswith(f", run kubectl --kubeconfig {config} delete pod db-0 -n {commands.namespace}")
    assert f"node {nodes[1]} is cordoned" in cordoned
    assert commands.pins() == {(nodes[1], commands.key("db-0", "static")): ""}


def test_the_namespace_of_the_context(commands: Commands, nodes: list[str], tmp_path: Path) -> None:
    config = tmp_path / "kubeconfig"
    shutil.copy(commands.plane.kubeconfig, config)
    change = ("set-context", "--current", "--namespace", commands.namespace)
    commands.plane.kubectl("config", "--kubeconfig", str(config), *change)
    commands.run("pin", "web-0", nodes[0], kubeconfig=config)
    assert commands.pins() == {(nodes[0], commands.key("web-0")): ""}


def test_a_pod_with_its_namespace_before_its_name(commands: Commands, nodes: list[str]) -> None:
    commands.run("pin", f"{commands.namespace}/web-0", nodes[0])
    assert commands.pins() == {(nodes[0], commands.key("web-0")): ""}


def test_a_name_that_is_too_long_for_a_label(commands: Commands, nodes: list[str]) -> None:
    assert "the pod's name has 64 characters" in the_error(commands.pin("w" * 64, nodes[0]))
    assert commands.pins() == {}


def test_a_node_that_does_not_exist(commands: Commands, nodes: list[str]) -> None:
    error = the_error(commands.pin("web-0", nodes[0] + "x"))
    assert f"node {nodes[0]}x does not exist: did you mean {nodes[0]}" in error
    assert commands.pins() == {}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("pin", "../pods", "n1"), "'..' is not a valid namespace"),
        (("pin", "Web_0", "n1"), "'Web_0' is not a valid pod name"),
        (("pin", "--record", ".."), "StatefulSet .. does not exist in namespace default"),
        (("pin", "--record", "web", "-n", "../x"), "'../x' is not a valid namespace"),
        (("unpin", "../x"), "'..' is not a valid namespace"),
    ],
)
def test_invalid_names_are_an_error(
    control_plane: ControlPlane, arguments: tuple[str, ...], words: str
) -> None:
    assert words in the_error(Commands(control_plane, "default").run(*arguments))


async def test_an_answer_that_is_lost_half_way(commands: Commands, nodes: list[str]) -> None:
    """The new label is written, the old label remains, and the error says so."""

    class Cut(Client):
        async def request(self, method: str, path: str, **more: Any) -> bytes:
            if method == "PATCH" and path.endswith(nodes[0]) and "dryRun" not in more["params"]:
                raise ConnectionFailed("cut off", sent=True)
            return await super().request(method, path, **more)

    key = commands.key("web-0")
    commands.label(nodes[0], key)
    async with Cut(load(commands.plane.kubeconfig)) as client:
        with pytest.raises(UserError, match=f"cut off; nodes changed before {nodes[0]}: {nodes[1]}; "):
            await pin(client, namespace=commands.namespace, pod="web-0", node=nodes[1], options=PinOptions())
    assert commands.pins() == {(nodes[0], key): "", (nodes[1], key): ""}


# A StatefulSet.


def test_a_stateful_set_is_recorded_where_its_pods_run(commands: Commands, nodes: list[str]) -> None:
    stateful_set(commands.plane, commands.namespace, {"db-0": nodes[1], "db-2": nodes[0]}, replicas=3)
    key = {name: commands.key(name, "static") for name in ("db-0", "db-2")}
    commands.label(nodes[2], key["db-0"])
    done = commands.pin("--record", "db")
    assert done.stdout == (
        f"{commands.namespace}/db-0 is pinned to {nodes[1]} for scheduler static\n"
        f"  no longer pinned to {nodes[2]}\n"
        f"{commands.namespace}/db-2 is pinned to {nodes[0]} for scheduler static\n"
        "not pinned: db-1: the pod is pending\n"
    )
    assert commands.pins() == {(nodes[1], key["db-0"]): "", (nodes[0], key["db-2"]): ""}


def test_a_pod_outside_the_stateful_set_is_not_pinned(commands: Commands, nodes: list[str]) -> None:
    """Such a pod has a name that a pod of the StatefulSet could have."""
    stateful_set(commands.plane, commands.namespace, {"db-0": nodes[0]}, replicas=1)
    stray = manifest("db-7", scheduler="static", labels={"app": "other"})
    stray["spec"]["nodeName"] = nodes[0]
    create(commands.plane, commands.namespace, stray)
    found = as_json(commands.pin("--record", "db", "--force", "-o", "json"))
    assert [(each["pod"], each["node"]) for each in found["pins"]] == [("db-0", nodes[0])]
    assert (found["leftOut"], found["warnings"]) == ([], [])
    assert commands.pins() == {(nodes[0], commands.key("db-0", "static")): "force"}


def test_a_stateful_set_that_runs_nowhere(commands: Commands) -> None:
    stateful_set(commands.plane, commands.namespace, {}, replicas=1)
    error = the_error(commands.pin("--record", "db"))
    assert f"no pod of StatefulSet {commands.namespace}/db runs on a node" in error


def test_a_stateful_set_that_does_not_exist(commands: Commands) -> None:
    error = the_error(commands.pin("--record", "db"))
    assert f"StatefulSet db does not exist in namespace {commands.namespace}" in error


def test_nothing_is_recorded_if_one_of_the_nodes_may_not_be_patched(
    commands: Commands, nodes: list[str]
) -> None:
    stateful_set(commands.plane, commands.namespace, {"db-0": nodes[0], "db-1": nodes[1]}, replicas=2)
    one_node = PATCH_NODES | {"resourceNames": [nodes[0]]}
    caller = commands.plane.service_account(
        "half", namespace=commands.namespace, rules=[GET_SETS, LIST_PODS, LIST_NODES, one_node]
    )
    error = the_error(commands.pin("--record", "db", kubeconfig=caller))
    assert f'you need permission to patch nodes: nodes "{nodes[1]}" is forbidden' in error
    assert commands.pins() == {}


# Listing pins.


def test_pins_are_printed_as_json(commands: Commands, nodes: list[str]) -> None:
    stateful_set(commands.plane, commands.namespace, {"db-0": nodes[0], "db-1": nodes[1]}, replicas=3)
    for number, value in enumerate(("", "force", "whatever")):
        commands.label(nodes[0], commands.key(f"db-{number}", "static"), value)
    found = as_json(commands.pin("--list", "-o", "json"))["pins"]
    ours = [each for each in found if each["namespace"] == commands.namespace]
    assert [(each["pod"], each["runsOn"], each["agrees"], each["nodes"]) for each in ours] == [
        ("db-0", nodes[0], True, [{"name": nodes[0], "force": False}]),
        ("db-1", nodes[1], False, [{"name": nodes[0], "force": True}]),
        ("db-2", "", None, [{"name": nodes[0], "force": False}]),
    ]
    assert {each["scheduler"] for each in ours} == {"static"}


def test_pins_are_printed_as_a_table_as_wide_as_its_cells(commands: Commands, nodes: list[str]) -> None:
    scheduler = f"table-{secrets.token_hex(3)}"
    pod = "a-name-that-does-not-fit-into-80-columns-beside-the-rest-0"
    older = f"rf.scheduler.{scheduler}/web-0"
    for node, value in zip(nodes, ("", "force", ""), strict=True):
        commands.label(node, commands.key(pod, scheduler), value)
    commands.label(nodes[0], older)
    try:
        done = commands.pin("--list", "--name", scheduler)
    finally:
        commands.plane.kubectl("label", "node", nodes[0], f"{older}-")
    assert [re.split(" {2,}", line.rstrip()) for line in done.stdout.splitlines()] == [
        ["scheduler", "namespace", "pod", "pinned to", "runs on", "agrees", "notes"],
        [scheduler, "(any)", "web-0", nodes[0], "older form; no such pod"],
        [scheduler, commands.namespace, pod, f"{nodes[0]}, {nodes[1]} (force), {nodes[2]}", "no such pod"],
    ]


def test_all_namespaces_have_what_one_has_not(commands: Commands, nodes: list[str]) -> None:
    commands.label(nodes[0], commands.key("web-0", "static"))
    here = as_json(commands.run("pin", "--list", "-n", "default", "-o", "json"))["pins"]
    everywhere = as_json(commands.run("pin", "--list", "-A", "-o", "json"))["pins"]
    assert commands.namespace not in {each["namespace"] for each in here}
    assert commands.namespace in {each["namespace"] for each in everywhere}


def test_a_scheduler_without_pins_has_an_empty_list(commands: Commands) -> None:
    done = commands.pin("--list", "--name", "unheard-of")
    assert (done.returncode, done.stdout) == (0, "no pods are pinned\n")


def test_a_label_without_a_scheduler_is_a_warning(commands: Commands, nodes: list[str]) -> None:
    key = f"rf.scheduler/{commands.namespace}"
    commands.label(nodes[0], key)
    try:
        done = commands.pin("--list")
    finally:
        commands.plane.kubectl("label", "node", nodes[0], f"{key}-")
    assert f"warning: {key} on {nodes[0]} pins nothing, because it does not name a scheduler\n" in done.stderr


# Removing pins.


def test_a_pin_is_removed_from_all_nodes(commands: Commands, nodes: list[str]) -> None:
    for node in nodes[:2]:
        commands.label(node, commands.key("web-0"))
    commands.label(nodes[0], commands.key("web-1"))
    done = commands.unpin("web-0")
    assert done.stdout == (
        f"{commands.namespace}/web-0 is no longer pinned to {nodes[0]}, {nodes[1]} for scheduler rfcustom\n"
    )
    assert commands.pins() == {(nodes[0], commands.key("web-1")): ""}


def test_the_older_form_is_removed_too_and_reported(commands: Commands, nodes: list[str]) -> None:
    pod = f"web-{commands.namespace}"
    older = f"rf.scheduler.rfcustom/{pod}"
    commands.label(nodes[0], commands.key(pod))
    commands.label(nodes[1], older)
    done = commands.unpin(pod)
    assert done.stdout.splitlines()[1] == (
        f"the older label {older} is removed from {nodes[1]}: it applied to {pod} in every namespace"
    )
    assert commands.pins() == {}


def test_a_label_that_may_pin_another_pod_stays_and_is_a_warning(
    commands: Commands, nodes: list[str]
) -> None:
    """The older form of the label is for `mine.<namespace>`, the newer form for `mine` in the namespace."""
    scheduler = f"mine.{commands.namespace}"
    unclear = f"rf.scheduler.{scheduler}/web-0"
    commands.label(nodes[0], unclear)
    commands.label(nodes[0], commands.key("web-0", scheduler))
    found = json.loads(commands.unpin("web-0", "--name", scheduler, "-o", "json").stdout)
    assert (found["nodes"], found["olderNodes"]) == ([nodes[0]], [])
    (warning,) = found["warnings"]
    assert f"it also pins {commands.namespace}/web-0 for scheduler mine" in warning
    assert f"kubectl label node {nodes[0]} {unclear}-" in warning
    assert commands.pins() == {(nodes[0], unclear): ""}


def test_removing_a_missing_pin_is_an_error_that_names_existing_pins(
    commands: Commands, nodes: list[str]
) -> None:
    commands.label(nodes[0], commands.key("web-0", "static"))
    error = the_error(commands.unpin("web-0"))
    assert f"no node is labeled {commands.key('web-0')}; " in error
    assert "the pod is pinned for scheduler static: give --name static" in error
    assert commands.pins() == {(nodes[0], commands.key("web-0", "static")): ""}


# Rights.


@pytest.mark.parametrize(
    ("rules", "arguments", "missing"),
    [
        ([], ("pin", "web-0"), "get pods in namespace"),
        ([GET_PODS], ("pin", "web-0"), "list nodes"),
        ([GET_PODS, LIST_NODES], ("pin", "web-0"), "patch nodes"),
        ([], ("pin", "--record", "db"), "get statefulsets.apps in namespace"),
        ([], ("pin", "--list"), "list nodes"),
        ([LIST_NODES], ("pin", "--list"), "list pods in namespace"),
        ([], ("unpin", "db-0"), "get pods in namespace"),
        ([LIST_NODES], ("unpin", "db-0", "--name", "rfcustom"), "patch nodes"),
    ],
)
def test_a_missing_permission_is_named_and_nothing_is_written(
    commands: Commands,
    nodes: list[str],
    rules: list[dict[str, Any]],
    arguments: tuple[str, ...],
    missing: str,
) -> None:
    before = commands.key("db-0")
    commands.label(nodes[1], before)
    caller = commands.plane.service_account("caller", namespace=commands.namespace, rules=rules)
    target = (nodes[0],) if arguments == ("pin", "web-0") else ()
    error = the_error(commands.run(*arguments, *target, "-n", commands.namespace, kubeconfig=caller))
    assert f"you need permission to {missing}" in error
    assert f'User "system:serviceaccount:{commands.namespace}:caller" cannot' in error
    assert commands.pins() == {(nodes[1], before): ""}


def test_the_rights_that_the_help_names_are_enough(commands: Commands, nodes: list[str]) -> None:
    stateful_set(commands.plane, commands.namespace, {"db-0": nodes[0]}, replicas=1)
    rules = [LIST_NODES, PATCH_NODES, GET_PODS, LIST_PODS, GET_SETS]
    caller = commands.plane.service_account("caller", namespace=commands.namespace, rules=rules)
    for arguments in (("--record", "db"), ("web-0", nodes[0]), ("--list",)):
        assert commands.pin(*arguments, kubeconfig=caller).returncode == 0
    assert commands.unpin("db-0", kubeconfig=caller).returncode == 0
    assert commands.pins() == {(nodes[0], commands.key("web-0")): ""}
