"""An extender that restarts while the pods on the nodes keep running."""

from collections.abc import Iterator

import pytest
from tests.live.stock import World, among, entry, free_port, loaded, measured

pytestmark = pytest.mark.control_plane


@pytest.fixture(scope="module")
def world(stock_cluster: World) -> Iterator[World]:
    # Half of the cores are used, most of that by the pod that runs there.
    with stock_cluster.having(measured(loaded("half", (4000, 400))), loaded("bare")) as made:
        made.api.create(made.named("running").requests(cpu="3").on("half"))
        yield made


def test_pods_that_are_in_the_measurements_do_not_count_twice_after_a_restart(world: World) -> None:
    port = free_port()
    with world.scheduler(entry(port, "safe-overload", filters=True)) as scheduler:
        found = []
        for _ in range(3):
            with world.extender("safe", f"--port={port}"):
                web = among(world.named("web").requests(cpu="1500m"), "half", "bare")
                assert scheduler.place(web).node == "half"
                found.append(scheduler.extender_scores(web))
            world.api.delete(web)
    assert found == [{"half": 9, "bare": 0}] * 3
