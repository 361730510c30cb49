"""The keys of pinning labels: created, checked, and read back."""

import re
import string

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from longshore.pin.labels import (
    Pin,
    legacy_key,
    pin_key,
    problem_with,
    readings,
)

LETTERS = string.ascii_lowercase + string.digits
NAMESPACES = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,20}[a-z0-9])?", fullmatch=True)
SCHEDULERS = st.lists(NAMESPACES, min_size=1, max_size=3).map(".".join)
PODS = st.from_regex(r"[a-z0-9]([-.a-z0-9]{0,60}[a-z0-9])?", fullmatch=True)


@given(SCHEDULERS, NAMESPACES, PODS)
def test_the_first_reading_of_a_key_is_what_it_was_made_from(
    scheduler: str, namespace: str, pod: str
) -> None:
    assert readings(pin_key(scheduler, namespace, pod))[0] == Pin(scheduler, namespace, pod)


@given(SCHEDULERS, PODS)
def test_a_key_of_the_older_form_is_also_read_as_such(scheduler: str, pod: str) -> None:
    assert readings(legacy_key(scheduler, pod))[-1] == Pin(scheduler, "", pod)


@given(SCHEDULERS, PODS)
def test_a_key_has_two_readings_only_if_the_name_of_the_scheduler_has_a_dot(scheduler: str, pod: str) -> None:
    assert len(readings(legacy_key(scheduler, pod))) == (2 if "." in scheduler else 1)


@given(st.text() | st.from_regex(r"rf\.scheduler\.[-ab.]{0,9}/[-A.]{0,9}", fullmatch=True))
def test_every_reading_of_any_text_gives_the_same_key_again(text: str) -> None:
    for pin in readings(text):
        again = legacy_key(pin.scheduler, pin.pod) if pin.older else pin_key(*pin)
        assert again == text


@given(st.text(alphabet=LETTERS + "-._/A", max_size=80))
def test_every_key_with_a_reading_is_a_valid_label_key(text: str) -> None:
    """By the rules of Kubernetes: at most 63 characters, alphanumeric at both ends."""
    key = f"rf.scheduler.static.default/{text}"
    assume(readings(key))
    assert len(text) <= 63
    assert re.fullmatch(r"[A-Za-z0-9][-A-Za-z0-9_.]*(?<=[A-Za-z0-9])", text)


@pytest.mark.parametrize(
    "key",
    [
        "rf.scheduler/web-0",
        "rf.scheduler./web-0",
        "rf.scheduler.static.default/",
        "rf.scheduler.static.default",
        "rf.scheduler..default/web-0",
        "rf.scheduler.static.default/" + "a" * 64,
        "kubernetes.io/hostname",
        "",
    ],
)
def test_a_key_that_is_not_a_pin_has_no_reading(key: str) -> None:
    assert readings(key) == ()


def test_a_last_part_that_is_too_long_for_a_namespace_belongs_to_the_scheduler() -> None:
    long = "n" * 64
    assert readings(f"rf.scheduler.static.{long}/web-0") == (Pin(f"static.{long}", "", "web-0"),)


@pytest.mark.parametrize(
    ("key", "words"),
    [
        (pin_key("static", "default", "w" * 64), "the pod's name has 64 characters"),
        (pin_key("s" * 250, "default", "web-0"), "has 271 characters, but a label allows at most 253"),
        (pin_key("My_Own", "default", "web-0"), "the scheduler name 'My_Own' cannot be part of a label"),
        (pin_key("static", "default", "-web"), "the pod's name '-web' cannot be part of a label"),
    ],
)
def test_the_reason_why_a_key_is_not_a_valid_label_is_given(key: str, words: str) -> None:
    assert words in problem_with(key)
