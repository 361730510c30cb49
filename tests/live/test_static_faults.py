"""`longshore static` when binds are refused, the API server hangs, or the process is killed."""

import asyncio
import json
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.kube.kubeconfigs import document, write
from tests.kube.proxy import Asked, LandLate, Proxy, Stall
from tests.live.pods import create, placed, pods
from tests.live.static import Static, install, key, label, node_of, pinned, running
from tests.waiting import eventually

from longshore.dev import ControlPlane
from longshore.dev.fixtures import Repetitions
from longshore.kube import load

FOLLOWING = [{"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["list", "watch"]}]


def binds(asked: Asked, pod: str = "") -> bool:
    return asked.method == "POST" and asked.path.endswith(f"{pod}/binding")


def through(proxy: Proxy, folder: Path) -> Path:
    """Return a kubeconfig for the proxy, which has the credentials."""
    return write(folder / "kubeconfig", document(cluster={"server": proxy.connection.server}))


async def called(check: Any, *arguments: Any, **more: Any) -> Any:
    """Call a blocking function in a thread, while the proxy runs."""
    return await asyncio.to_thread(check, *arguments, **more)


def bind(plane: ControlPlane, namespace: str, pod: str, node: str) -> None:
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": pod},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }
    path = f"/api/v1/namespaces/{namespace}/pods/{pod}/binding"
    plane.kubectl("create", "--raw", path, "-f", "-", input=json.dumps(body))


def may_bind_in(plane: ControlPlane, namespace: str) -> Path:
    """Return the kubeconfig of an account that may watch everywhere, and bind in one namespace."""
    kubeconfig = plane.service_account("half", namespace=namespace, rules=FOLLOWING)
    rights = ("--verb=create", "--resource=pods/binding", "-n", namespace)
    plane.kubectl("create", "role", "binds", *rights)
    account = f"--serviceaccount={namespace}:half"
    plane.kubectl("create", "rolebinding", "binds", "--role=binds", account, "-n", namespace)
    return kubeconfig


async def test_refused_binds_stop_nothing_and_are_counted(
    control_plane: ControlPlane, namespace: str, nodes: list[str], tmp_path: Path
) -> None:
    """Another client binds one pod first (409), and one is in a namespace without the right (403)."""
    other = f"{namespace}-other"
    control_plane.create_namespace(other)
    labels = [key(namespace, "taken"), key(namespace, "fine"), key(other, "forbidden")]
    kubeconfig = may_bind_in(control_plane, namespace)
    proxy = Proxy(load(kubeconfig), lambda asked: LandLate(1.0) if binds(asked, "taken") else None)
    async with proxy.running():
        with running(tmp_path, "--name=test", kubeconfig=through(proxy, tmp_path)) as static:
            await called(static.wait_for_line, "ready")
            await called(create, control_plane, namespace, pinned("taken"), pinned("fine"))
            await called(create, control_plane, other, pinned("forbidden"))
            await called(label, control_plane, nodes[0], *(f"{each}=" for each in labels))
            await called(eventually, lambda: any(binds(each, "taken") for each in proxy.asked), pause=0.01)
            await called(bind, control_plane, namespace, "taken", nodes[1])
            await called(
                static.wait_for_line, f"ERROR - Pod {namespace}/taken not bound to node {nodes[0]}: "
            )
            refused = await called(static.wait_for_line, f"ERROR - Pod {other}/forbidden not bound")
            assert "is forbidden" in refused
            assert static.process.poll() is None

            def count(metric: str, **more: str) -> float:
                return static.counts(f"schedule_request_{metric}total", node=nodes[0], **more)

            def counted() -> None:
                assert count("", pod="taken") == 1
                assert count("failure_", pod="taken", http_status="409", reason="Conflict") == 1
                assert count("failure_", http_status="409") == 1
                assert count("failure_", pod="forbidden", http_status="403", reason="Forbidden") >= 1
                assert count("success_") == count("success_", pod="fine") == 1
                assert count("failure_", pod="fine") == 0

            await called(counted)
            assert "no right to bind pods in all namespaces" in static.log.read_text()
            # It binds the pod once it has the right.
            bound = await called(placed, control_plane, namespace)
            assert bound == {f"{namespace}/taken": nodes[1], f"{namespace}/fine": nodes[0]}
            assert await called(node_of, control_plane, other, "forbidden") == ""
            assert await called(static.stop) == 0
    control_plane.delete_namespace(other)


# Shutdown.


async def test_on_sigterm_it_completes_the_bind_in_progress(
    control_plane: ControlPlane, namespace: str, nodes: list[str], tmp_path: Path
) -> None:
    proxy = Proxy(load(install(control_plane)), lambda asked: LandLate(1.0) if binds(asked) else None)
    async with proxy.running():
        with running(tmp_path, "--name=test", kubeconfig=through(proxy, tmp_path)) as static:
            await called(label, control_plane, nodes[0], f"{key(namespace, 'last')}=")
            await called(create, control_plane, namespace, pinned("last"))
            await called(eventually, lambda: any(binds(each) for each in proxy.asked), pause=0.01)
            assert await called(static.stop) == 0
    assert node_of(control_plane, namespace, "last") == nodes[0]
    assert any(f"Pod last scheduled on node {nodes[0]}" in line for line in static.lines)


@pytest.mark.parametrize("stuck", ["binds", "pods"])
async def test_on_sigterm_it_does_not_wait_for_a_server_that_hangs(
    control_plane: ControlPlane, namespace: str, nodes: list[str], tmp_path: Path, stuck: str
) -> None:
    """The server hangs in a bind, or in the lists of a pass."""
    if stuck == "binds":
        upstream = install(control_plane)
    else:
        listing = [{**FOLLOWING[0], "verbs": ["list"]}]
        upstream = control_plane.service_account("lists", namespace=namespace, rules=listing)

    def script(asked: Asked) -> Stall | None:
        hangs = binds(asked) if stuck == "binds" else asked.path.endswith("/pods")
        return Stall(after_bytes=0) if hangs else None

    async with Proxy(load(upstream), script).running() as proxy:
        with running(tmp_path, "--name=test", kubeconfig=through(proxy, tmp_path)) as static:
            await called(label, control_plane, nodes[0], f"{key(namespace, 'last')}=")
            await called(create, control_plane, namespace, pinned("last"))
            await called(eventually, lambda: proxy.faults > 0, pause=0.01)
            assert await called(static.stop, within=5.0) == 0


# SIGKILL.


@pytest.fixture
def kills(repetitions: Repetitions) -> int:
    return repetitions(full=10)


@pytest.fixture
def many(
    control_plane: ControlPlane, namespace: str, nodes: list[str], kills: int
) -> Iterator[dict[str, str]]:
    """Return pods and their labeled nodes, so many that some pods are left at the last kill."""
    chosen = {f"many-{number}": nodes[number % len(nodes)] for number in range(max(200, 80 * kills))}
    for node in nodes:
        label(control_plane, node, *(f"{key(namespace, pod)}=" for pod, its in chosen.items() if its == node))
    create(control_plane, namespace, *(pinned(pod, cpu="10m") for pod in chosen))
    yield chosen
    for node in nodes:
        label(control_plane, node, *(f"{key(namespace, pod)}-" for pod, its in chosen.items() if its == node))


async def test_killed_at_any_moment_it_continues_after_a_restart(
    control_plane: ControlPlane,
    namespace: str,
    many: dict[str, str],
    tmp_path: Path,
    kills: int,
) -> None:
    """No pod is lost, bound to another node or bound twice, although binds take effect after the kill."""
    before = {name: pod["metadata"]["uid"] for name, pod in pods(control_plane, namespace).items()}
    late = Proxy(
        load(install(control_plane)),
        lambda asked: LandLate(random.uniform(0.0, 0.5)) if binds(asked) else None,
    )
    logs: list[Static] = []

    def scheduled(static: Static) -> list[str]:
        return [line.split(" - INFO - ")[1] for line in static.lines if " scheduled on node " in line]

    async with late.running():
        kubeconfig = through(late, tmp_path)
        for _ in range(kills):
            enough = random.randint(1, 20)
            with running(tmp_path, "--name=test", kubeconfig=kubeconfig) as static:
                logs.append(static)
                await called(eventually, lambda: len(scheduled(logs[-1])) >= enough, pause=0.001)  # noqa: B023 - at once
        assert len(placed(control_plane, namespace)) < len(many)
        with running(tmp_path, "--name=test", kubeconfig=kubeconfig) as static:
            logs.append(static)
            await called(eventually, lambda: len(placed(control_plane, namespace)) == len(many))
            assert await called(static.stop) == 0
    assert placed(control_plane, namespace) == {f"{namespace}/{pod}": node for pod, node in many.items()}
    assert {name: pod["metadata"]["uid"] for name, pod in pods(control_plane, namespace).items()} == before
    assert set(Counter(line for static in logs for line in scheduled(static)).values()) == {1}
