"""Times in RFC 3339."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longshore.api.timestamps import format_timestamp, parse_timestamp


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1970-01-01T00:00:10Z", 10.0),
        ("1970-01-01T01:00:10.25+01:00", 10.25),
    ],
)
def test_a_time_with_its_zone_is_read(text: str, seconds: float) -> None:
    assert parse_timestamp(text) == seconds


@pytest.mark.parametrize("text", [None, "", "yesterday", "1970-01-01T00:00:10"])
def test_a_text_that_is_not_a_time_with_a_zone_is_read_as_nan(text: str | None) -> None:
    assert math.isnan(parse_timestamp(text))


def test_a_time_is_written_in_utc_with_the_precision_asked_for() -> None:
    assert format_timestamp(10.9876543) == "1970-01-01T00:00:10Z"
    assert format_timestamp(10.9876543, "milliseconds") == "1970-01-01T00:00:10.987Z"
    assert format_timestamp(10.9876543, "microseconds") == "1970-01-01T00:00:10.987654Z"
    assert format_timestamp(10, "milliseconds") == "1970-01-01T00:00:10.000Z"


def test_a_time_after_the_year_9999_is_written_as_the_last_valid_one() -> None:
    assert format_timestamp(1e15) == "9999-12-31T23:59:59Z"


@given(st.integers(0, 4_000_000_000))
def test_a_written_time_is_read_as_the_same_time(seconds: int) -> None:
    assert parse_timestamp(format_timestamp(seconds)) == seconds
