"""A stock kube-scheduler and an extender that authenticate each other by certificates."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.kube import pki
from tests.live.stock import Extender, Fate, World, among, loaded
from tests.waiting import eventually

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


@contextmanager
def serving(world: World, files: Path, callers: Path) -> Iterator[Extender]:
    """Run an extender that accepts clients with a certificate signed by a CA in this file."""
    with world.extender(
        "safe",
        f"--tls-cert-file={files / 'server.crt'}",
        f"--tls-private-key-file={files / 'server.key'}",
        f"--client-ca-file={callers}",
    ) as found:
        yield found
        assert found.stop() == 0


@pytest.fixture(scope="module")
def extender(world: World, files: Path) -> Iterator[Extender]:
    with serving(world, files, files / "ca.crt") as found:
        yield found


def by_tls(extender: Extender, **tls: str) -> dict[str, Any]:
    return extender.entry(
        "safe-overload",
        filters=True,
        urlPrefix=f"https://localhost:{extender.port}/scheduler",
        enableHTTPS=True,
        tlsConfig=tls,
    )


def trusting(files: Path) -> dict[str, str]:
    return {"caFile": str(files / "ca.crt")}


def showing(files: Path) -> dict[str, str]:
    return {"certFile": str(files / "client.crt"), "keyFile": str(files / "client.key")}


def test_both_show_a_certificate(world: World, extender: Extender, files: Path) -> None:
    with world.scheduler(by_tls(extender, **trusting(files), **showing(files))) as scheduler:
        web = among(world.named("web").requests(cpu="500m"), "idle", "warm")
        assert scheduler.place(web).node == "idle"
        assert scheduler.extender_scores(web) == {"idle": 10, "warm": 8}


def test_the_authority_of_callers_is_replaced_while_both_run(
    world: World, files: Path, tmp_path: Path
) -> None:
    callers, after = tmp_path / "callers.crt", pki.issue("the next authority", authority=True).certificate
    before = (files / "ca.crt").read_bytes()
    callers.write_bytes(before)
    with (
        serving(world, files, callers) as extender,
        world.scheduler(by_tls(extender, **trusting(files), **showing(files))) as scheduler,
    ):

        def place() -> Fate:
            return scheduler.place(among(world.named("web"), "idle", "warm"))

        assert place().node == "idle"
        callers.write_bytes(after + before)
        eventually(lambda: extender.line("the certificate was renewed"), within=30)
        assert place().node == "idle"
        callers.write_bytes(after)
        eventually(place, lambda fate: fate.message.startswith('Post "https://'), within=30)


def test_a_scheduler_without_a_certificate_is_refused(world: World, extender: Extender, files: Path) -> None:
    with world.scheduler(by_tls(extender, **trusting(files))) as scheduler:
        fate = scheduler.place(among(world.named("web"), "idle", "warm"))
    assert fate.node == ""
    url = f"https://localhost:{extender.port}/scheduler/predicates/safe-overload"
    assert fate.message.endswith(f"with extender at URL {url}, code 401")
