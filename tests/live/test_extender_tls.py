"""A stock kube-scheduler and an extender that know each other by their certificates."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.kube import pki
from tests.live.stock import Extender, World, among, loaded

pytestmark = pytest.mark.control_plane


@pytest.fixture(scope="module")
def world(stock_cluster: World) -> Iterator[World]:
    with stock_cluster.having(loaded("idle", (6000, 400), (12, 1)), loaded("warm", (2400, 500))) as made:
        yield made


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the authority, and certificates and keys of the extender and of kube-scheduler."""
    folder = tmp_path_factory.mktemp("pki")
    (folder / "ca.crt").write_bytes(pki.authority().certificate)
    for name, issued in (("server", pki.server()), ("client", pki.client())):
        (folder / f"{name}.crt").write_bytes(issued.certificate)
        (folder / f"{name}.key").write_bytes(issued.key)
    return folder


@pytest.fixture(scope="module")
def extender(world: World, files: Path) -> Iterator[Extender]:
    with world.extender(
        "safe",
        f"--tls-cert-file={files / 'server.crt'}",
        f"--tls-private-key-file={files / 'server.key'}",
        f"--client-ca-file={files / 'ca.crt'}",
    ) as found:
        yield found
        assert found.stop() == 0


def by_tls(extender: Extender, **tls: str) -> dict[str, Any]:
    return extender.entry(
        "safe-overload",
        filters=True,
        urlPrefix=f"https://localhost:{extender.port}/scheduler",
        enableHTTPS=True,
        tlsConfig=tls,
    )


def test_both_show_a_certificate(world: World, extender: Extender, files: Path) -> None:
    certificate = {"certFile": str(files / "client.crt"), "keyFile": str(files / "client.key")}
    with world.scheduler(by_tls(extender, caFile=str(files / "ca.crt"), **certificate)) as scheduler:
        web = among(world.named("web").requests(cpu="500m"), "idle", "warm")
        assert scheduler.place(web).node == "idle"
        assert scheduler.extender_scores(web) == {"idle": 10, "warm": 8}


def test_a_scheduler_without_a_certificate_is_not_heard(
    world: World, extender: Extender, files: Path
) -> None:
    with world.scheduler(by_tls(extender, caFile=str(files / "ca.crt"))) as scheduler:
        fate = scheduler.place(among(world.named("web"), "idle", "warm"))
    assert fate.node == ""
    url = f"https://localhost:{extender.port}/scheduler/predicates/safe-overload"
    assert fate.message.endswith(f"with extender at URL {url}, code 401")
