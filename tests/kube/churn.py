"""Random creates, updates, and deletes of pods, and the check that a reflector has kept up with them."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from longshore.api import Change, Pod
from longshore.kube.client import Client
from longshore.kube.config import Connection
from longshore.kube.errors import ApiError
from longshore.kube.pool import Pool
from longshore.kube.reflector import Reflector
from longshore.kube.resources import PODS
from longshore.kube.writer import Writer

_WORKERS = 8
_NAMES = 400


def pod_body(name: str, labels: dict[str, str]) -> dict[str, object]:
    container = {
        "name": "main",
        "image": "none",
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels},
        "spec": {"schedulerName": "nobody", "terminationGracePeriodSeconds": 0, "containers": [container]},
    }


async def churn(writer: Writer, namespace: str, *, operations: int, seed: int) -> None:
    """Change pods at random, several at a time. Each worker uses its own names."""

    async def work(worker: int) -> None:
        rng = random.Random(f"{seed}/{worker}")
        alive: set[str] = set()
        for step in range(operations // _WORKERS):
            name = f"pod-{seed}-{worker}-{rng.randrange(_NAMES // _WORKERS)}"
            if name not in alive:
                try:
                    await writer.create(PODS, namespace, pod_body(name, {"step": str(step)}))
                except ApiError as error:
                    # A server that is killed in the middle of a deletion leaves the object marked as being
                    # deleted.
                    if "object is being deleted" not in error.message:
                        raise
                    await writer.delete(PODS, namespace, name)
                else:
                    alive.add(name)
            elif rng.random() < 0.5:
                await writer.patch(PODS, namespace, name, {"metadata": {"labels": {"step": str(step)}}})
            else:
                await writer.delete(PODS, namespace, name)
                alive.discard(name)

    await asyncio.gather(*(work(worker) for worker in range(_WORKERS)))


class Mirror:
    """A reflector under test, with its changes applied to a second store as a handler would."""

    reflector: Reflector[Pod]

    def __init__(self) -> None:
        self.told: dict[str, Pod] = {}
        self.changes = 0

    def take(self, change: Change[Pod]) -> None:
        """Check that the change continues the history: the old object is the one that was reported last."""
        self.changes += 1
        key = change.object.key
        before = self.told.get(key)
        if change.new is None:
            assert before is not None, f"{key} was deleted before it was added"
            del self.told[key]
            return
        if change.old is None:
            assert before is None, f"{key} was added twice"
        else:
            assert change.old is before, f"{key} changed from a version that was never reported"
        self.told[key] = change.new

    async def equals_a_fresh_list(self, direct: Connection, namespace: str, *, within: float) -> None:
        """Wait until no object is missing or extra. Fail with the difference at the time limit."""
        async with Client(direct) as client:
            body = await client.request("GET", PODS.path(namespace=namespace), accept=PODS.codec.accept_list)
        fresh = {pod.key: pod for pod in PODS.codec.page(body).items}
        try:
            async with asyncio.timeout(within):
                while self.reflector.store != fresh:
                    await asyncio.sleep(0.05)
        except TimeoutError:
            store = self.reflector.store
            lost = [key for key in fresh if store.get(key) != fresh[key]]
            extra = [key for key in store if key not in fresh]
            raise AssertionError(
                f"lost or stale: {lost[:5]} ({len(lost)}), extra: {extra[:5]} ({len(extra)})"
            ) from None
        assert self.told == fresh


@asynccontextmanager
async def mirrored(connection: Connection, namespace: str, **options: Any) -> AsyncIterator[Mirror]:
    """Run a reflector for the pods of the namespace on the given connection."""
    async with Client(connection) as client:
        mirror = Mirror()
        mirror.reflector = Reflector(client, PODS, mirror.take, namespace=namespace, **options)
        task = asyncio.create_task(mirror.reflector.run())
        try:
            yield mirror
        finally:
            if task.done():
                task.result()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


@asynccontextmanager
async def writing(connection: Connection) -> AsyncIterator[Writer]:
    async with Pool(connection, size=16) as pool:
        yield Writer(pool, concurrency=16)
