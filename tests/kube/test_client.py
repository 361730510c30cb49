"""The client with the real API server: authentication, verification, and rotation of tokens."""

import asyncio
import json
import ssl
from pathlib import Path

import pytest
import uvloop
from tests.kube.churn import pod_body
from tests.waiting import eventually_async

from longshore.api.meta import ApiObject, ApiStruct, Change
from longshore.dev import ControlPlane
from longshore.errors import UserError
from longshore.kube.client import Client
from longshore.kube.codec import JsonCodec
from longshore.kube.config import Connection, load
from longshore.kube.credentials import Fixed, TokenFile
from longshore.kube.errors import ApiError, ConnectionFailed
from longshore.kube.pool import Pool
from longshore.kube.reflector import Reflector
from longshore.kube.resources import NODES, PODS, Resource
from longshore.kube.writer import Writer


def with_token(control_plane: ControlPlane, path: Path) -> Connection:
    admin = load(control_plane.kubeconfig)
    context = ssl.create_default_context(cafile=str(control_plane.ca_file))
    return Connection(server=admin.server, ssl=context, credentials=TokenFile(path))


async def test_a_server_with_a_foreign_certificate_is_rejected(control_plane: ControlPlane) -> None:
    server = load(control_plane.kubeconfig).server
    stranger = Connection(server=server, ssl=ssl.create_default_context(), credentials=Fixed(None))
    async with Client(stranger) as client:
        with pytest.raises(ConnectionFailed, match="certificate verify failed"):
            await client.request("GET", "/version")
    async with Pool(stranger) as pool:
        with pytest.raises(ConnectionFailed, match="certificate verify failed"):
            await pool.send("GET", "/version")


async def test_an_unreachable_server_is_a_failed_connection() -> None:
    nowhere = Connection(server="http://127.0.0.1:1", ssl=None, credentials=Fixed(None))
    async with Client(nowhere) as client, Pool(nowhere) as pool:
        for attempt in (client.request("GET", "/version"), pool.send("GET", "/version")):
            with pytest.raises(ConnectionFailed) as failed:
                await attempt
            assert not failed.value.sent


async def test_a_wrong_token_is_answered_with_401(control_plane: ControlPlane, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("not-a-token")
    async with Client(with_token(control_plane, token)) as client:
        with pytest.raises(ApiError) as refused:
            await client.request("GET", "/api/v1/pods")
    assert refused.value.status == 401


@pytest.mark.parametrize("accept", ["application/json", PODS.codec.accept_list])
async def test_a_service_account_without_permission_gets_403_with_the_message_of_the_server(
    control_plane: ControlPlane, namespace: str, accept: str
) -> None:
    kubeconfig = control_plane.service_account("nobody", namespace=namespace)
    async with Client(load(kubeconfig)) as client:
        with pytest.raises(ApiError, match="cannot list resource") as refused:
            await client.request("GET", "/api/v1/pods", accept=accept)
    assert (refused.value.status, refused.value.reason) == (403, "Forbidden")


async def test_a_rotated_token_is_read_again(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    """The old account is deleted, so its token is rejected; by then the file contains the new one."""
    for name in ("old", "new"):
        control_plane.kubectl("create", "serviceaccount", name, "-n", namespace)
        control_plane.kubectl(
            "create",
            "rolebinding",
            name,
            "-n",
            namespace,
            "--clusterrole=edit",
            f"--serviceaccount={namespace}:{name}",
        )
    token = tmp_path / "token"
    token.write_text(control_plane.kubectl("create", "token", "old", "-n", namespace))
    connection = with_token(control_plane, token)
    told: list[Change[ApiObject]] = []
    async with Client(connection) as client, Pool(connection) as pool:
        writer = Writer(pool)
        reflector = Reflector(client, PODS, told.append, namespace=namespace)
        task = asyncio.create_task(reflector.run())
        await asyncio.wait_for(reflector.synced.wait(), 20)
        await writer.create(PODS, namespace, pod_body("before", {}))
        control_plane.kubectl("delete", "serviceaccount", "old", "-n", namespace)
        token.write_text(control_plane.kubectl("create", "token", "new", "-n", namespace))
        await _until_refused(control_plane, connection, namespace)
        await writer.create(PODS, namespace, pod_body("after", {}))
        await client.request("GET", PODS.path(namespace=namespace))
        await eventually_async(lambda: reflector.store, lambda store: f"{namespace}/after" in store)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


class Failing:
    """Credentials with a plugin that has started to fail."""

    async def authorization(self) -> str | None:
        raise UserError("the plugin says no")

    def invalidate(self) -> None:
        """Do nothing: nothing is cached."""


async def test_failing_credentials_are_a_failed_connection(control_plane: ControlPlane) -> None:
    good = load(control_plane.kubeconfig)
    connection = Connection(server=good.server, ssl=good.ssl, credentials=Failing())
    async with Client(connection) as client, Pool(connection) as pool:
        for attempt in (client.request("GET", "/version"), pool.send("GET", "/version")):
            with pytest.raises(ConnectionFailed, match="the plugin says no") as failed:
                await attempt
            assert not failed.value.sent


async def _until_refused(control_plane: ControlPlane, connection: Connection, namespace: str) -> None:
    """Wait until the token is rejected. The API server caches for some seconds that it was valid."""
    header = await connection.credentials.authorization()
    old = Connection(server=connection.server, ssl=connection.ssl, credentials=Fixed(header))
    async with Client(old) as client, asyncio.timeout(60):
        while True:
            try:
                await client.request("GET", PODS.path(namespace=namespace))
            except ApiError as error:
                assert error.status == 401
                return
            await asyncio.sleep(0.5)


class WidgetSpec(ApiStruct):
    size: int = 0


class Widget(ApiObject):
    spec: WidgetSpec = WidgetSpec()


WIDGETS = Resource(group="example.com", version="v1", plural="widgets", codec=JsonCodec(Widget))

WIDGET_CRD = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  names: {plural: widgets, singular: widget, kind: Widget}
  scope: Namespaced
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties: {spec: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""


@pytest.mark.parametrize("streaming", [True, False])
async def test_a_custom_resource_is_watched_with_a_label_selector(
    streaming: bool, control_plane: ControlPlane, namespace: str
) -> None:
    control_plane.kubectl("apply", "-f", "-", input=WIDGET_CRD)
    control_plane.kubectl("wait", "--for=condition=Established", "crd/widgets.example.com")
    connection = load(control_plane.kubeconfig)
    told: list[tuple[str, int]] = []

    def tell(change: Change[Widget]) -> None:
        told.append((change.object.metadata.name, change.new.spec.size if change.new else -1))

    def widget(name: str, size: object, **labels: str) -> dict[str, object]:
        metadata = {"name": name, "labels": labels}
        return {
            "apiVersion": "example.com/v1",
            "kind": "Widget",
            "metadata": metadata,
            "spec": {"size": size},
        }

    async with Client(connection) as client, Pool(connection) as pool:
        writer = Writer(pool)
        await writer.create(WIDGETS, namespace, widget("first", 1, app="web"))
        await writer.create(WIDGETS, namespace, widget("other", 9, app="db"))
        await writer.create(WIDGETS, namespace, widget("broken", "huge", app="web"))
        reflector = Reflector(
            client, WIDGETS, tell, namespace=namespace, label_selector="app=web", streaming=streaming
        )
        task = asyncio.create_task(reflector.run())
        await asyncio.wait_for(reflector.synced.wait(), 20)
        await writer.create(WIDGETS, namespace, widget("second", 2, app="web"))
        await writer.patch(WIDGETS, namespace, "first", {"spec": {"size": "enormous"}})
        await writer.patch(WIDGETS, namespace, "second", {"metadata": {"labels": {"app": "db"}}})
        await writer.patch(WIDGETS, namespace, "broken", {"spec": {"size": 3}})
        await eventually_async(lambda: told, lambda changes: len(changes) == 5)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    # An object that cannot be decoded counts as missing; one that no longer matches the selector, as deleted.
    assert told == [("first", 1), ("second", 2), ("first", -1), ("second", -1), ("broken", 3)]


async def test_a_field_selector_hides_pods_that_ended(control_plane: ControlPlane, namespace: str) -> None:
    connection = load(control_plane.kubeconfig)
    told: list[str] = []

    def tell(change: Change[ApiObject]) -> None:
        told.append("deleted" if change.new is None else "there")

    async with Client(connection) as client, Pool(connection) as pool:
        writer = Writer(pool)
        reflector = Reflector(
            client, PODS, tell, namespace=namespace, field_selector="status.phase!=Succeeded"
        )
        task = asyncio.create_task(reflector.run())
        await asyncio.wait_for(reflector.synced.wait(), 20)
        await writer.create(PODS, namespace, pod_body("web", {}))
        await writer.patch(PODS, namespace, "web", {"status": {"phase": "Succeeded"}}, subresource="status")
        await eventually_async(lambda: told, lambda changes: changes[-1:] == ["deleted"])
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert reflector.store == {}


async def test_a_long_list_is_read_in_pages(control_plane: ControlPlane, namespace: str) -> None:
    """There are more pods than fit on a page, and the server does not support streaming."""
    connection = load(control_plane.kubeconfig)
    async with Client(connection) as client, Pool(connection) as pool:
        writer = Writer(pool)
        count = 620
        await asyncio.gather(
            *(writer.create(PODS, namespace, pod_body(f"pod-{number}", {})) for number in range(count))
        )
        reflector = Reflector(client, PODS, lambda _change: None, namespace=namespace, streaming=False)
        task = asyncio.create_task(reflector.run())
        await asyncio.wait_for(reflector.synced.wait(), 20)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert len(reflector.store) == count


def test_a_client_that_is_closed_at_any_moment_leaves_no_connection(control_plane: ControlPlane) -> None:
    """An event loop that closes during the shutdown of a TLS connection would fail."""

    async def leave_after(seconds: float) -> None:
        async with Client(load(control_plane.kubeconfig)) as client:
            tasks = [
                asyncio.create_task(Reflector(client, PODS, lambda _change: None).run()) for _ in range(3)
            ]
            await asyncio.sleep(seconds)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    for step in range(40):
        uvloop.run(leave_after(step * 0.001))


async def test_a_request_target_with_a_line_break_is_not_sent(control_plane: ControlPlane) -> None:
    async with Pool(load(control_plane.kubeconfig)) as pool:
        for target in ("/api/v1/pods\r\nX-Evil: 1", "/a b", "api", ""):
            with pytest.raises(ValueError, match="target of an HTTP request"):
                await pool.send("GET", target)


async def test_the_pool_serves_more_requests_than_it_has_connections(control_plane: ControlPlane) -> None:
    async with Pool(load(control_plane.kubeconfig), size=2) as pool:
        cancelled = [asyncio.create_task(pool.send("GET", NODES.path())) for _ in range(10)]
        await asyncio.sleep(0)
        for task in cancelled[::2]:
            task.cancel()
        answers = await asyncio.gather(
            *cancelled, *(pool.send("GET", NODES.path()) for _ in range(10)), return_exceptions=True
        )
    good = [answer for answer in answers if not isinstance(answer, BaseException)]
    assert len(good) == 15
    assert all(json.loads(answer.body)["kind"] == "NodeList" for answer in good)
