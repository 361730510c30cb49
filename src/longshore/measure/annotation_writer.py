"""Writes measurements of nodes, and what their pods request, into the nodes' annotations.

A pass lists all nodes, asks the provider, and writes what differs, with one patch for each node. A problem
with one node or with the provider is reported and does not stop the pass, because values that are not renewed
must be removed.
"""

import asyncio
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import msgspec
import structlog

from longshore.api import Node
from longshore.errors import UserError
from longshore.kube.backoff import sleep_unless
from longshore.kube.caller import list_objects, patch
from longshore.kube.client import Client
from longshore.kube.kinds import NOT_ENDED
from longshore.kube.resources import NODES, PODS
from longshore.measure.node_annotations import GPUS, Wanted, allocation, changes, load, requested_by_node
from longshore.measure.providers import Provider, Values

log = structlog.get_logger()

# The most concurrent patches, to spare the API server.
_PATCHES_AT_ONCE = 16
# The share of the interval that is random, so that annotators do not query one Prometheus at the same time.
# It only shortens the interval, because values may expire soon after it.
_JITTER = 0.1
# A pass that is asked to stop gets this many seconds to finish.
_STOP_SECONDS = 5.0


class Annotated(msgspec.Struct, frozen=True, omit_defaults=True):
    """The changes of a node's annotations, and the `error` if they could not be written."""

    name: str
    set: dict[str, str] = {}
    removed: tuple[str, ...] = ()
    error: str = ""


class Pass(msgspec.Struct, frozen=True, rename="camel"):
    """The result of a pass. `nodes` are those that had to change; times are in seconds."""

    nodes: tuple[Annotated, ...]
    unchanged: int
    # Nodes without a fresh measurement, if measurements are written.
    unmeasured: int
    began: float
    seconds: float
    dry_run: bool = False
    # Why the provider returned nothing.
    problem: str = ""

    @property
    def failed(self) -> list[Annotated]:
        return [node for node in self.nodes if node.error]


def _no_progress(_done: int, _all: int) -> None:
    """Ignore the progress of a pass."""


@dataclass(frozen=True, kw_only=True)
class Annotator:
    """Writes annotations. Without a `provider`, it writes only what pods request.

    `selector` is a label selector for nodes.
    """

    client: Client
    provider: Provider | None
    allocation: bool
    max_age: float
    selector: str = ""
    gpu_resource: str = GPUS
    dry_run: bool = False
    on_progress: Callable[[int, int], None] = _no_progress
    wall: Callable[[], float] = time.time

    async def once(self) -> Pass:
        """Run one pass. Raises UserError if the cluster cannot be read; other problems are in the result."""
        began = self.wall()
        chosen = {"labelSelector": self.selector} if self.selector else None
        nodes = await list_objects(self.client, NODES, selectors=chosen)
        requested: Mapping[str, Mapping[str, int]] = {}
        if self.allocation:
            pods = await list_objects(self.client, PODS, selectors={"fieldSelector": NOT_ENDED})
            # In a thread, because a large cluster has many pods.
            requested = await asyncio.to_thread(requested_by_node, pods.values(), gpus=self.gpu_resource)
        values, problem = await self._measured(list(nodes.values()))
        now = self.wall()
        differing: dict[str, Wanted] = {}
        unmeasured = 0
        for name, node in nodes.items():
            wanted: dict[str, str | None] = {}
            if self.provider is not None:
                of_load = load(node, values, now=now, max_age=self.max_age)
                unmeasured += not any(of_load.values())
                wanted.update(of_load)
            if self.allocation:
                amounts = requested.get(name, {})
                wanted.update(
                    allocation(node, amounts, now=began, max_age=self.max_age, gpus=self.gpu_resource)
                )
            if found := changes(node, wanted):
                differing[name] = found
        written = await self._write(differing)
        return Pass(
            nodes=written,
            unchanged=len(nodes) - len(differing),
            unmeasured=unmeasured,
            began=began,
            seconds=self.wall() - began,
            dry_run=self.dry_run,
            problem=problem,
        )

    async def run(self, stop: asyncio.Event, *, interval: float, on_pass: Callable[[Pass], None]) -> None:
        """Run a pass at every interval, in seconds between starts, until `stop` is set."""
        while not stop.is_set():
            began = time.monotonic()
            done = await self._pass_unless_stopped(stop)
            if done is not None:
                _log(done)
                on_pass(done)
            pause = interval * random.uniform(1 - _JITTER, 1) - (time.monotonic() - began)
            await sleep_unless(stop, max(pause, 0.0))

    async def _pass_unless_stopped(self, stop: asyncio.Event) -> Pass | None:
        """Run a pass. Log a failure and return None, because the next pass may succeed."""
        work = asyncio.create_task(self.once())
        stopped = asyncio.create_task(stop.wait())
        await asyncio.wait([work, stopped], return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        await asyncio.wait([work], timeout=_STOP_SECONDS)
        if work.cancel():
            await asyncio.wait([work])
            log.warning("stopped before all nodes were annotated")
            return None
        try:
            return work.result()
        except UserError as error:
            log.error("no node was annotated", reason=str(error))  # noqa: TRY400 - one line is enough
            return None

    async def _measured(self, nodes: Sequence[Node]) -> tuple[Values, str]:
        if self.provider is None or not nodes:
            return {}, ""
        try:
            return await self.provider.measure(nodes), ""
        except UserError as error:
            return {}, str(error)
        except Exception as error:
            # Old values must be removed even after an unexpected error.
            return {}, f"{type(error).__name__}: {error}"

    async def _write(self, differing: Mapping[str, Wanted]) -> tuple[Annotated, ...]:
        slots = asyncio.Semaphore(_PATCHES_AT_ONCE)
        done = 0

        async def one(name: str, wanted: Wanted) -> Annotated | None:
            nonlocal done
            error = ""
            async with slots:
                try:
                    body = {"metadata": {"annotations": wanted}}
                    if not await patch(self.client, NODES, body, name=name, dry_run=self.dry_run):
                        return None
                except UserError as problem:
                    error = str(problem)
                finally:
                    done += 1
                    self.on_progress(done, len(differing))
            return Annotated(
                name,
                set={key: text for key, text in wanted.items() if text is not None},
                removed=tuple(key for key, text in wanted.items() if text is None),
                error=error,
            )

        written = await asyncio.gather(*(one(name, wanted) for name, wanted in sorted(differing.items())))
        return tuple(node for node in written if node is not None)


def _log(done: Pass) -> None:
    if done.problem:
        log.warning("no measurements", reason=done.problem)
    for node in done.failed:
        log.warning("node not annotated", node=node.name, reason=node.error)
    log.info(
        "annotated",
        changed=len(done.nodes) - len(done.failed),
        unchanged=done.unchanged,
        unmeasured=done.unmeasured,
        failed=len(done.failed),
        seconds=round(done.seconds, 2),
    )
