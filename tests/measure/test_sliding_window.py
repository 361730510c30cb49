"""Mean, deviation and percentiles of samples, in virtual time."""

import statistics

import pytest

from longshore.measure.sliding_window import SlidingWindow, SlidingWindows

ONE_SAMPLE = ("mean", "p50", "p90", "p95", "p99")


def test_no_samples_have_no_statistics() -> None:
    assert SlidingWindow(900, max_age=300).statistics() == {}


def test_one_sample_has_no_deviation() -> None:
    window = SlidingWindow(900, max_age=300)
    window.add(250.0, 1000.0)
    assert window.statistics() == dict.fromkeys(ONE_SAMPLE, (250.0, 1000.0))


def test_several_samples_have_all_of_them_with_the_time_of_the_last() -> None:
    window = SlidingWindow(900, max_age=300)
    values = [float(number) for number in range(101)]
    for number, value in enumerate(values):
        window.add(value, 1000.0 + number)
    found = window.statistics()
    assert found["mean"] == pytest.approx((50.0, 1100.0))
    assert found["std"] == pytest.approx((statistics.stdev(values), 1100.0))
    for percent in (50, 90, 95, 99):
        assert found[f"p{percent}"] == pytest.approx((percent, 1100.0))


def test_a_sample_that_was_seen_before_counts_once() -> None:
    """metrics-server repeats the last sample until its next scrape."""
    window = SlidingWindow(900, max_age=300)
    for value, time in ((100.0, 1000.0), (100.0, 1000.0), (100.0, 1000.0), (400.0, 1015.0)):
        window.add(value, time)
    assert window.statistics()["mean"] == (250.0, 1015.0)


def test_a_sample_from_the_past_is_passed_over() -> None:
    window = SlidingWindow(900, max_age=300)
    window.add(100.0, 1000.0)
    window.add(900.0, 990.0)
    assert window.statistics()["mean"] == (100.0, 1000.0)


def test_a_clock_that_was_ahead_for_one_sample_does_not_hide_later_samples() -> None:
    window = SlidingWindow(900, max_age=300)
    window.add(100.0, 1000.0)
    window.add(500.0, 86_400.0)
    window.add(200.0, 1015.0)
    assert window.statistics() == dict.fromkeys(ONE_SAMPLE, (200.0, 1015.0))


def test_samples_of_a_clock_that_was_far_ahead_are_dropped() -> None:
    """The true samples within the window stay."""
    window = SlidingWindow(900, max_age=300)
    for value, time in ((100.0, 1000.0), (500.0, 1615.0), (600.0, 1630.0), (200.0, 1045.0), (300.0, 1060.0)):
        window.add(value, time)
    assert window.statistics()["mean"] == (200.0, 1060.0)


def test_samples_leave_the_window() -> None:
    window = SlidingWindow(60, max_age=300)
    for value, time in ((100.0, 1000.0), (200.0, 1030.0), (300.0, 1060.0), (400.0, 1061.0)):
        window.add(value, time)
    assert window.statistics()["mean"] == (300.0, 1061.0)


def test_after_a_long_silence_only_the_new_sample_counts() -> None:
    window = SlidingWindow(60, max_age=300)
    window.add(100.0, 1000.0)
    window.add(300.0, 5000.0)
    assert window.statistics() == dict.fromkeys(ONE_SAMPLE, (300.0, 5000.0))


def test_nodes_and_resources_are_kept_apart_and_forgotten_when_gone() -> None:
    windows = SlidingWindows(60, max_age=300)
    windows.add("a", "cpu", 100.0, 1000.0)
    windows.add("a", "memory", 5.0, 1000.0)
    windows.add("b", "cpu", 300.0, 1001.0)
    windows.keep(["a", "c"])
    assert windows.statistics() == {
        f"{resource}/{name}": {"a": (value, 1000.0)}
        for resource, value in (("cpu", 100.0), ("memory", 5.0))
        for name in ONE_SAMPLE
    }
