"""Pod sets: the names of their plans, durations in labels and triggers, and the two kinds of objects."""

import json
import re
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longshore.api import (
    Condition,
    PlanEntry,
    SchedulePlanSpec,
    ScheduleTrigger,
    ScheduleTriggerSpec,
    ScheduleTriggerStatus,
    Service,
    format_duration,
    parse_duration,
    plan_name,
)
from longshore.api.pod_set import BALANCE, DEFAULT_PLANNER_LABEL, PLANNER_ENABLED, planner_label

LABEL_VALUES = st.from_regex(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?", fullmatch=True)
NAMESPACES = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,20}[a-z0-9])?", fullmatch=True)
OBJECT_NAME = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
CENTURY = 100 * 365 * 24 * 3600 * 1000


@pytest.mark.parametrize(
    ("namespace", "podset", "name"),
    [
        ("default", "planner-podset", "planner-podset-d4cd7dc68"),
        ("default", "test", "test-6f96d96994"),
        ("ns1", "set-a", "set-a-7d79588f6f"),
    ],
)
def test_plans_have_the_names_that_pallet_gives_them(namespace: str, podset: str, name: str) -> None:
    assert plan_name(namespace, podset) == name


@pytest.mark.parametrize(
    ("podset", "start"),
    [
        ("My_Set", "my-set-"),
        ("v1.Web", "v1.web-"),
        ("a..b", "a.b-"),
        ("a_.-b", "a.b-"),
        ("a--b_C", "a--b-c-"),
    ],
)
def test_a_set_with_an_invalid_object_name_gets_a_plan_with_the_closest_valid_name(
    podset: str, start: str
) -> None:
    assert re.fullmatch(re.escape(start) + "[4-9bcdf]{1,10}", plan_name("default", podset))


def test_sets_whose_closest_valid_names_are_equal_have_different_plans() -> None:
    assert plan_name("default", "my-set") != plan_name("default", "My_Set")


@given(NAMESPACES, LABEL_VALUES)
def test_the_plan_of_any_set_has_a_valid_name(namespace: str, podset: str) -> None:
    name = plan_name(namespace, podset)
    assert re.fullmatch(OBJECT_NAME, name)
    assert len(name) <= 253


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0.0),
        ("-0", 0.0),
        ("+0", 0.0),
        ("0s", 0.0),
        ("90s", 90.0),
        ("2m0s", 120.0),
        ("1h30m", 5400.0),
        ("1.5h", 5400.0),
        ("1.s", 1.0),
        (".5s", 0.5),
        ("0.5m", 30.0),
        ("-1.5s", -1.5),
        ("+300ms", 0.3),
        ("1h1h", 7200.0),
        ("1s1h", 3601.0),
        ("007s", 7.0),
        ("100us", 1e-4),
        ("1µs", 1e-6),
        ("1μs", 1e-6),
        ("1ns", 1e-9),
        ("0.9ns", 0.0),
        ("0.3333333333333333333h", 1200.0),
        ("0.29us", 2.9e-7),
        ("9223372036854775807ns", 9223372036.854775807),
        ("-9223372036854775808ns", -9223372036.854775808),
        ("2562047h47m16.854775807s", 9223372036.854775807),
        ("0" * 5000 + "1s", 1.0),
        ("0." + "0" * 400 + "1h", 0.0),
    ],
)
def test_durations_that_go_accepts(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "3",
        "00",
        "0.0",
        "-",
        "+-1s",
        "s",
        ".",
        ".s",
        "+.s",
        "2minutes",
        "1d",
        "1S",
        "1 s",
        " 1s",
        "1s ",
        "1s\n",
        "1s2",
        "0s0",
        "1s.",
        "1.5.5s",
        "1e3s",
        "1sm",
        "1,5s",
        "\uff11s",
        "inf",
        "9223372036854775808ns",
        "-9223372036854775809ns",
        "2562047h47m16.854775808s",
        "3000000h",
        "9" * 5000 + "s",
    ],
)
def test_durations_that_go_rejects(text: str) -> None:
    assert parse_duration(text) is None


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0s"),
        (0.0004, "0s"),
        (-0.0004, "0s"),
        (0.001, "1ms"),
        (0.3, "300ms"),
        (0.9996, "1s"),
        (1.5, "1.5s"),
        (1.005, "1.005s"),
        (59.9999, "1m0s"),
        (120.0, "2m0s"),
        (3600.0, "1h0m0s"),
        (5400.25, "1h30m0.25s"),
        (-1.5, "-1.5s"),
        (-0.3, "-300ms"),
        (360000.0, "100h0m0s"),
    ],
)
def test_durations_as_go_prints_them(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@given(st.integers(-CENTURY, CENTURY))
def test_whole_milliseconds_are_read_as_they_were_written(milliseconds: int) -> None:
    assert parse_duration(format_duration(milliseconds / 1000)) == milliseconds / 1000


@given(st.lists(st.tuples(st.integers(0, 10**6), st.sampled_from(["ms", "s", "m", "h"])), min_size=1))
def test_a_duration_is_the_sum_of_its_parts(parts: list[tuple[int, str]]) -> None:
    milliseconds = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}
    total = sum(number * milliseconds[unit] for number, unit in parts)
    expected = total / 1000 if total * 10**6 < 2**63 else None
    assert parse_duration("".join(f"{number}{unit}" for number, unit in parts)) == expected


@given(st.text(alphabet="0123456789.+-hmsnuµ ", max_size=12) | st.text(max_size=8))
def test_any_text_is_a_duration_or_rejected(text: str) -> None:
    seconds = parse_duration(text)
    assert seconds is None or abs(seconds) <= 2**63 / 10**9


@pytest.mark.parametrize(
    ("budget", "seconds"),
    [
        ("", 0.3),
        ("2s", 2.0),
        ("1h", 600.0),
        ("0s", 0.3),
        ("-1s", 0.3),
        ("soon", 0.3),
    ],
)
def test_a_budget_is_limited_and_an_invalid_one_ignored(budget: str, seconds: float) -> None:
    assert ScheduleTriggerSpec(state="Planning", budget=budget).budget_seconds == seconds


def test_a_trigger_written_for_pallet_is_read() -> None:
    body = {"metadata": {"name": "customtrigger"}, "spec": {"state": "Planning"}, "status": {}}
    trigger = msgspec.json.decode(json.dumps(body), type=ScheduleTrigger)
    assert trigger.spec == ScheduleTriggerSpec("Planning", all_or_nothing=False, objective=BALANCE, budget="")
    assert trigger.status == ScheduleTriggerStatus()


def written(struct: msgspec.Struct) -> Any:
    return json.loads(msgspec.json.encode(struct))


def test_a_merged_status_removes_the_fields_that_it_does_not_set() -> None:
    condition = Condition(type="Held", status="True")
    status = written(ScheduleTriggerStatus(held=0, conditions=(condition,)))
    assert status["held"] == 0
    assert status["fireAt"] is None
    # In a list a null would stay.
    assert status["conditions"] == [{"type": "Held", "status": "True"}]


def test_an_empty_plan_is_written_with_its_list() -> None:
    assert written(SchedulePlanSpec()) == {"plan": []}
    entries = (PlanEntry("p1", "n1"),)
    assert written(SchedulePlanSpec(entries)) == {"plan": [{"pod": "p1", "node": "n1"}]}


def test_a_planner_service_is_recognized_by_its_labels() -> None:
    labels = {"planner.ciena.io/set-x": "enabled", "planner.ciena.io/default": "enabled"}
    body = {"metadata": {"name": "podset-planner", "labels": labels}, "spec": {"ports": [{"port": 7309}]}}
    service = msgspec.json.decode(json.dumps(body), type=Service)
    assert service.metadata.labels.get(planner_label("set-x")) == PLANNER_ENABLED
    assert service.metadata.labels.get(DEFAULT_PLANNER_LABEL) == PLANNER_ENABLED
    assert planner_label("set-y") not in service.metadata.labels
