"""The memory of the scheduler on a large cluster, and the time from its start to its first bind.

    make bench-scale                                     5,000 nodes and 100,000 pods, about four minutes
    .venv/bin/python -m bench.scale --nodes 500 --pods 10000

A real control plane has the nodes and the pods. The pods are bound, and belong to 1,000 workloads, each with
its own labels, owner and requests. `longshore run` starts as a separate process, with the rights of its
service account, and schedules one more pod. The bars for the default sizes are 600 MiB, and 20 s from the
start of the process to the bind of that pod.
"""

import argparse
import asyncio
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import uvloop
from bench.usage import usage
from bench.workloads import NODE
from bench.workloads import pod as pod_object

from longshore.dev import ControlPlane
from longshore.dev.component import Component, last_trouble
from longshore.errors import UserError
from longshore.kube.client import Client
from longshore.kube.config import load
from longshore.kube.pool import Pool
from longshore.kube.resources import PODS

_ROOT = Path(__file__).parents[1]
_NAMESPACE = "default"
_PODS = PODS.path(namespace=_NAMESPACE)
_WORKLOADS = 1000
_IN_FLIGHT = 48
_MAX_MIB = 600
_MAX_SECONDS = 20.0


def _note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _bound(number: int, nodes: int) -> dict[str, Any]:
    """Return a pod of a workload, on its node."""
    workload = number % _WORKLOADS
    body = pod_object(f"pod-{number:06d}", workload="basic", scheduler_name="longshore")
    labels = {
        "app": f"app-{workload}",
        "pod-template-hash": f"{workload:010x}",
        "tier": f"tier-{workload % 7}",
    }
    owner = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": f"app-{workload}-{workload:010x}",
        "uid": f"00000000-0000-0000-0000-{workload:012x}",
        "controller": True,
    }
    body["metadata"] |= {"labels": labels, "ownerReferences": [owner]}
    body["spec"]["nodeName"] = f"node-{number % nodes}"
    return body


async def _fill(kubeconfig: Path, *, nodes: int, pods: int) -> None:
    async with Pool(load(kubeconfig), size=_IN_FLIGHT) as pool:

        async def create(numbers: range) -> None:
            for number in numbers:
                answer = await pool.send("POST", _PODS, msgspec.json.encode(_bound(number, nodes)))
                if answer.status != 201:
                    raise UserError(f"a pod was not created: {answer.body.decode()[:300]}")
                if number % 10_000 == 0 and number:
                    _note(f"  {number:,} pods")

        await asyncio.gather(*(create(range(start, pods, _IN_FLIGHT)) for start in range(_IN_FLIGHT)))


async def _until_bound(kubeconfig: Path, component: Component) -> None:
    async with Client(load(kubeconfig)) as client:
        body = pod_object("one-more", workload="basic", scheduler_name="longshore")
        await client.request("POST", _PODS, body=msgspec.json.encode(body))
        component.start()
        while True:
            component.require_running()
            answer = await client.request("GET", f"{_PODS}/one-more")
            if msgspec.json.decode(answer)["spec"].get("nodeName"):
                return
            await asyncio.sleep(0.1)


def _measure(plane: ControlPlane, *, nodes: int, pods: int) -> tuple[float, float]:
    """Return the seconds from the start of the scheduler to its first bind, and its peak memory in MiB."""
    plane.apply(_ROOT / "deploy" / "scheduler.yaml")
    account = plane.service_account("longshore", namespace="kube-system")
    _note(f"creating {pods:,} pods on {nodes:,} nodes")
    uvloop.run(_fill(plane.kubeconfig, nodes=nodes, pods=pods))
    command = [
        "-m",
        "longshore",
        "run",
        "--no-leader-elect",
        "--metrics-port=0",
        "--kubeconfig",
        str(account),
    ]
    component = Component("longshore", Path(sys.executable), command, folder=plane.folder)
    begun = time.perf_counter()
    try:
        uvloop.run(asyncio.wait_for(_until_bound(plane.kubeconfig, component), 300))
        seconds = time.perf_counter() - begun
        # By then it has freed what it needed only to start.
        time.sleep(3.0)
        assert component.pid is not None
        return seconds, usage(component.pid).peak_bytes / 2**20
    except TimeoutError as error:
        raise UserError(f"no bind within 300 s; its log: {last_trouble(component.log)}") from error
    finally:
        component.kill()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=100_000)
    options = parser.parse_args()
    with ControlPlane.start(nodes=0, kwok=False, controller_manager=False) as plane:
        plane.add_nodes(options.nodes, cpu=NODE["cpu"], memory=NODE["memory"], pods=NODE["pods"])
        seconds, peak = _measure(plane, nodes=options.nodes, pods=options.pods)
    print(f"{options.nodes:,} nodes, {options.pods:,} pods")
    print(f"start to first bind = {seconds:.1f} s (bar {_MAX_SECONDS:g})")
    print(f"peak memory = {peak:.0f} MiB (bar {_MAX_MIB})")
    return 0 if seconds <= _MAX_SECONDS and peak <= _MAX_MIB else 1


if __name__ == "__main__":
    sys.exit(main())
