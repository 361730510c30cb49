"""Plans shrink with their sets and go with the last pod, on a real cluster."""

import pytest
from tests.live.pod_sets import (
    SCHEDULE,
    World,
    member,
    members,
    trigger,
)

pytestmark = pytest.mark.control_plane


async def released(here: World, count: int = 3) -> None:
    await here.create(trigger(state=SCHEDULE), *members(count))
    await here.until_placed(count)
    await here.until_plan_tells_the_truth()


async def test_an_entry_goes_with_its_pod_and_the_plan_with_the_last(here: World) -> None:
    await released(here)
    before = here.entries()
    await here.delete("Pod", "pod-0")
    del before["pod-0"]
    await here.until(lambda: here.entries() == before)
    await here.delete("Pod", "pod-1", "pod-2")
    await here.until(lambda: not here.plans)
    # The trigger stays as it is.
    assert here.state() == SCHEDULE


async def test_an_entry_is_removed_when_its_pod_begins_to_terminate(here: World) -> None:
    """The pod has a grace period, and a finalizer that keeps it for longer."""
    slow = member("slow", terminationGracePeriodSeconds=30)
    slow["metadata"]["finalizers"] = ["example.org/wait"]
    await here.create(trigger(state=SCHEDULE), slow, member("other"))
    await here.until_placed(2)
    await here.until_plan_tells_the_truth()
    await here.delete("Pod", "slow")
    await here.until(lambda: list(here.entries()) == ["other"])
    assert here.pods["slow"].metadata.deletion_timestamp is not None
    await here.patch("Pod", "slow", {"metadata": {"finalizers": None}})


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
async def test_an_entry_is_removed_when_its_pod_has_ended(here: World, phase: str) -> None:
    await released(here, 2)
    # KWOK reports that they run, once.
    await here.until(lambda: {pod.status.phase for pod in here.pods.values()} == {"Running"})
    await here.patch("Pod", "pod-0", {"status": {"phase": phase}}, subresource="status")
    await here.until(lambda: list(here.entries()) == ["pod-1"])


async def test_a_pod_of_a_known_name_is_planned_again_if_its_node_no_longer_fits(
    here: World,
) -> None:
    await released(here, 2)
    first = here.placed["pod-0"]
    await here.delete("Pod", "pod-0")
    await here.until(lambda: "pod-0" not in here.pods)
    await here.patch("Node", first, {"spec": {"unschedulable": True}})
    await here.until_the_scheduler_knows_all()
    await here.create(member("pod-0"))
    await here.until_placed(2)
    assert here.placed["pod-0"] != first
    await here.until_plan_tells_the_truth()
