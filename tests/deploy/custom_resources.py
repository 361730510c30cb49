"""Triggers and plans on a real API server: install their definitions, build manifests, send requests."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from longshore.api import Condition, SchedulePlanStatus, ScheduleTriggerStatus, UnplacedPod
from longshore.api.pod_set import API_VERSION, MAX_UNPLACED
from longshore.dev import ControlPlane, KubectlError
from longshore.kube.client import Client
from longshore.kube.config import load
from longshore.kube.errors import ApiError
from longshore.kube.resources import SCHEDULE_PLANS, SCHEDULE_TRIGGERS, Resource

T = TypeVar("T")

FOLDER = Path(__file__).parents[2] / "deploy" / "crds"
KINDS = {SCHEDULE_TRIGGERS.plural: "ScheduleTrigger", SCHEDULE_PLANS.plural: "SchedulePlan"}
LABELS = {"planner.ciena.io/pod-set": "planner-podset", "planner.ciena.io/quiet-time": "2m0s"}
MERGE = "application/merge-patch+json"

CONDITION = Condition(
    type="Released",
    status="False",
    reason="QuietTime",
    message="the last pod joined 3 s ago",
    last_transition_time="2026-01-01T00:00:00Z",
    observed_generation=1,
)
TRIGGER_STATUS = ScheduleTriggerStatus(
    held=3,
    bound=2,
    fire_at="2026-01-01T00:02:00Z",
    planning_since="2026-01-01T00:00:00.250000Z",
    quiet_time="2m0s",
    budget="300ms",
    conditions=(CONDITION,),
    observed_generation=1,
)
PLAN_STATUS = SchedulePlanStatus(
    objective=12.5,
    bound=12.0,
    gap=0.04,
    planner="planner-system/podset-planner",
    seconds=0.25,
    planned=2,
    following=1,
    unplaced=tuple(UnplacedPod(f"big-{number}", "Insufficient cpu") for number in range(MAX_UNPLACED)),
    conditions=(CONDITION,),
    observed_generation=1,
)


def install(plane: ControlPlane) -> None:
    plane.kubectl("apply", "--validate=strict", "-f", str(FOLDER))
    wait_until_served(plane)


def wait_until_served(plane: ControlPlane) -> None:
    """Wait until the API server accepts, lists and explains both kinds, which takes a moment for each."""
    names = [f"crd/{plural}.planner.ciena.io" for plural in KINDS]
    plane.kubectl("wait", "--for=condition=Established", "--timeout=60s", *names)
    deadline = time.monotonic() + 30
    while True:
        plane.kubectl("api-resources")  # refreshes the kinds that kubectl has cached
        try:
            for plural in KINDS:
                plane.kubectl("explain", plural)
        except KubectlError:
            assert time.monotonic() < deadline, "the kinds are still not listed"
        else:
            return


def manifest(resource: Resource[Any], name: str = "it", **fields: Any) -> dict[str, Any]:
    meta = {"name": name, "labels": LABELS}
    return {"apiVersion": API_VERSION, "kind": KINDS[resource.plural], "metadata": meta, **fields}


def trigger(**spec: Any) -> dict[str, Any]:
    return manifest(SCHEDULE_TRIGGERS, spec={"state": "Planning", **spec})


def plan(*entries: dict[str, str]) -> dict[str, Any]:
    return manifest(SCHEDULE_PLANS, spec={"plan": list(entries)})


async def ask(
    plane: ControlPlane,
    method: str,
    path: str,
    body: Any = None,
    *,
    kubeconfig: Path | None = None,
    content_type: str = "application/json",
    accept: str = "application/json",
    dry: bool = False,
) -> bytes:
    """Send a request, and return the answer. Retry while the definition is not active yet."""
    async with Client(load(kubeconfig or plane.kubeconfig)) as client:
        return await until(
            lambda: client.request(
                method,
                path,
                body=None if body is None else msgspec.json.encode(body),
                content_type=content_type,
                accept=accept,
                params={"dryRun": "All"} if dry else None,
            ),
            refused=429,
        )


async def listed(plane: ControlPlane, namespace: str, resource: Resource[Any]) -> list[Any]:
    page = resource.codec.page(await ask(plane, "GET", resource.path(namespace=namespace)))
    assert page.undecodable == []
    return page.items


async def until(done: Callable[[], Awaitable[T]], *, refused: int) -> T:
    """Retry the call while it is refused with this status, and return its result."""
    deadline = time.monotonic() + 30
    while True:
        try:
            return await done()
        except ApiError as error:
            if error.status != refused or time.monotonic() > deadline:
                raise
        await asyncio.sleep(0.1)
