"""Whether the object on the API server contains everything that was sent, which resolves a lost response."""

import msgspec
import pytest

from longshore.api.pod_set import SchedulePlanStatus, UnplacedPod
from longshore.kube.writer import contains

FOUND = {
    "metadata": {"name": "a", "uid": "7"},
    "status": {"planned": 2, "unplaced": [{"pod": "x", "reason": "full"}]},
}


@pytest.mark.parametrize(
    "sent",
    [
        {},
        {"metadata": {"name": "a"}},
        {"status": {"unplaced": [{"pod": "x"}]}},
        {"status": {"unplaced": ({"pod": "x"},)}},
        {"status": {"objective": None}},
    ],
)
def test_everything_that_was_sent_is_found(sent: object) -> None:
    assert contains(FOUND, sent)


@pytest.mark.parametrize(
    "sent",
    [
        {"metadata": {"name": "b"}},
        {"status": {"unplaced": ()}},
        {"status": {"unplaced": []}},
        {"status": {"unplaced": ({"pod": "y"},)}},
        {"status": {"unplaced": ({"pod": "x"}, {"pod": "y"})}},
        {"status": {"unplaced": "x"}},
        {"status": {"planned": None}},
    ],
)
def test_a_difference_from_what_was_sent_is_noticed(sent: object) -> None:
    assert not contains(FOUND, sent)


def test_a_status_built_from_structs_is_recognized_when_read_back() -> None:
    status = SchedulePlanStatus(planned=2, unplaced=(UnplacedPod("x", "full"),))
    sent = {"status": msgspec.to_builtins(status)}
    assert contains(msgspec.json.decode(msgspec.json.encode(sent)), sent)
