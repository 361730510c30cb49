"""An extender keeps nothing of large requests."""

import gc
import json
import tracemalloc
from collections.abc import Callable

import pytest
from tests.serve.extendernodes import FILTER, PRIORITIES, RISK, WEB
from tests.serve.extenders import Made, about_names, document

LARGE = 2 * 2**20


def large_pod(number: int, *, place: str) -> bytes:
    said = about_names(WEB, ["calm", "full"])
    said["Pod"]["metadata"][place] = {"x": str(number) * LARGE}
    return json.dumps(said).encode()


def large_list(number: int) -> bytes:
    names = '["calm", %s"full"]' % (" " * (LARGE + number))
    return f'{{"Pod": {json.dumps(document(WEB))}, "NodeNames": {names}}}'.encode()


LARGE_REQUESTS = pytest.mark.parametrize(
    "request_of",
    [
        lambda number: large_pod(number, place="annotations"),
        lambda number: large_pod(number, place="labels"),
        large_list,
    ],
    ids=["annotations", "labels", "names"],
)


@LARGE_REQUESTS
def test_large_requests_are_not_remembered(safe: Made, request_of: Callable[[int], bytes]) -> None:
    def ask(number: int) -> None:
        body = request_of(number)
        for verb in (PRIORITIES, FILTER):
            assert safe.post(verb, body)[0] == 200

    ask(0)
    gc.collect()
    tracemalloc.start()
    try:
        for number in range(1, 6):
            ask(number)
        gc.collect()
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < LARGE / 2


@LARGE_REQUESTS
def test_large_requests_are_answered_as_others_are(safe: Made, request_of: Callable[[int], bytes]) -> None:
    small = about_names(WEB, ["calm", "full"])
    for verb in (FILTER, PRIORITIES, FILTER, PRIORITIES):
        assert safe.post(verb, request_of(1)) == safe.post(verb, small)
    assert safe.post(FILTER, request_of(1))[1]["FailedAndUnresolvableNodes"] == {"full": RISK}
