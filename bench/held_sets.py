"""The CPU time that a scheduler takes to hold many pod sets while nothing happens."""

import asyncio
import time
from typing import NamedTuple

import msgspec
from bench.stage import NAMESPACE, Stage
from bench.usage import usage

from longshore.api.kept import kept_condition
from longshore.api.pod_set import API_VERSION, PLANNING, POD_SET_LABEL, QUIET_TIME_LABEL, SCHEDULER_NAME
from longshore.ask.pod_sets import read
from longshore.dev.component import Component
from longshore.engine.cycle.reporting import POD_SCHEDULED
from longshore.errors import UserError
from longshore.kube.resources import PODS, SCHEDULE_TRIGGERS
from longshore.podset.texts import REASON_WAITING

# It does not end during the benchmark.
_QUIET_TIME = "24h"
_HELD_WITHIN = 120.0
_POLL_SECONDS = 1.0
# Statuses are written at most once per second, so the last ones are written by then.
_REST_SECONDS = 3.0


class Crowd(NamedTuple):
    """The number of sets, of pods in each, and of seconds for which the scheduler is measured."""

    sets: int
    pods: int
    seconds: float


def trigger(podset: str, **labels: str) -> dict[str, object]:
    meta = {"name": podset, "namespace": NAMESPACE, "labels": {POD_SET_LABEL: podset, **labels}}
    spec = {"state": PLANNING}
    return {"apiVersion": API_VERSION, "kind": "ScheduleTrigger", "metadata": meta, "spec": spec}


async def idle_share(scheduler: Component, stage: Stage, crowd: Crowd) -> float:
    """Return the share of one core, measured after every held pod has its condition and its event."""
    await _create(stage, crowd)
    scheduler.start()
    try:
        await _wait_until_held(scheduler, stage, crowd)
        await stage.wait_for_notes(within=_HELD_WITHIN, count=crowd.sets * crowd.pods)
        await asyncio.sleep(_REST_SECONDS)
        scheduler.require_running()
        if scheduler.pid is None:
            raise UserError("the scheduler has no process")
        before, began = usage(scheduler.pid).cpu_seconds, time.perf_counter()
        await asyncio.sleep(crowd.seconds)
        share = (usage(scheduler.pid).cpu_seconds - before) / (time.perf_counter() - began)
        if not await _all_held(stage, crowd):
            raise UserError("not all sets stayed held during the measurement")
        return share
    finally:
        scheduler.kill()


async def _create(stage: Stage, crowd: Crowd) -> None:
    async def create(path: str, body: object) -> None:
        await stage.client.request("POST", path, body=msgspec.json.encode(body))

    for number in range(crowd.sets):
        name = f"idle-{number}"
        await create(
            SCHEDULE_TRIGGERS.path(namespace=NAMESPACE), trigger(name, **{QUIET_TIME_LABEL: _QUIET_TIME})
        )
        pods = PODS.path(namespace=NAMESPACE)
        await asyncio.gather(*(create(pods, _pod(f"{name}-{each}", name)) for each in range(crowd.pods)))


def _pod(name: str, podset: str) -> dict[str, object]:
    spec = {"schedulerName": SCHEDULER_NAME, "containers": [{"name": "main", "image": "none"}]}
    meta = {"name": name, "labels": {POD_SET_LABEL: podset}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


async def _wait_until_held(scheduler: Component, stage: Stage, crowd: Crowd) -> None:
    until = time.perf_counter() + _HELD_WITHIN
    while not await _all_held(stage, crowd):
        scheduler.require_running()
        if time.perf_counter() > until:
            raise UserError(f"not all pods are held and have their condition after {_HELD_WITHIN:g} s")
        await asyncio.sleep(_POLL_SECONDS)


async def _all_held(stage: Stage, crowd: Crowd) -> bool:
    """Whether every pod has its condition, and every trigger its number of held pods and its time to fire."""
    found = await read(stage.client, namespace=NAMESPACE)
    conditions = [kept_condition(pod.status.conditions, POD_SCHEDULED) for pod in found.pods]
    explained = [each for each in conditions if each is not None and each.reason == REASON_WAITING]
    waiting = [each for each in found.triggers if each.status.held == crowd.pods and each.status.fire_at]
    bound = any(pod.spec.node_name for pod in found.pods)
    return not bound and len(explained) == crowd.sets * crowd.pods and len(waiting) == crowd.sets
