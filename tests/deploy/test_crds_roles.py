"""The rights to triggers and plans that the roles in deploy/crds give."""

from typing import Any

import pytest
from tests.deploy.custom_resources import MERGE, ask, plan, trigger, until

from longshore.dev import ControlPlane
from longshore.kube.errors import ApiError
from longshore.kube.resources import SCHEDULE_PLANS, SCHEDULE_TRIGGERS, Resource


@pytest.mark.parametrize(
    ("resource", "body", "change"),
    [
        (SCHEDULE_TRIGGERS, trigger(), {"spec": {"state": "Schedule"}}),
        (SCHEDULE_PLANS, plan({"pod": "p", "node": "n"}), {"spec": {"plan": []}}),
    ],
    ids=["triggers", "plans"],
)
@pytest.mark.parametrize(
    ("viewer", "editor"),
    [("longshore-podset-viewer", "longshore-podset-editor"), ("view", "edit")],
    ids=["own roles", "roles of namespaces"],
)
async def test_viewers_can_read_and_editors_can_change_everything_but_the_status(
    installed: ControlPlane,
    namespace: str,
    resource: Resource[Any],
    body: dict[str, Any],
    change: dict[str, Any],
    viewer: str,
    editor: str,
) -> None:
    seeing = installed.service_account("viewer", namespace=namespace, cluster_role=viewer)
    editing = installed.service_account("editor", namespace=namespace, cluster_role=editor)
    path = resource.path(namespace=namespace, name="it")

    async def patch(kubeconfig: Any, part: str = "") -> bytes:
        return await ask(installed, "PATCH", path + part, change, kubeconfig=kubeconfig, content_type=MERGE)

    # New rights take a moment to become effective.
    collection = resource.path(namespace=namespace)
    await until(lambda: ask(installed, "POST", collection, body, kubeconfig=editing), refused=403)
    await until(lambda: ask(installed, "GET", path, kubeconfig=seeing), refused=403)
    await patch(editing)
    for kubeconfig, part in ((seeing, ""), (seeing, "/status"), (editing, "/status")):
        with pytest.raises(ApiError, match="cannot patch resource"):
            await patch(kubeconfig, part)
