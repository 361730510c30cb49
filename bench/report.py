"""The report of a contest: tables of all rounds, the medians, and the faults that were found."""

import statistics
from collections.abc import Callable
from typing import NamedTuple

from bench.contest import Turn
from bench.rounds import ROUNDS, Turns, note
from bench.stage import EVENTS_WITHIN


class Result(NamedTuple):
    """The median rate of each side in pods per second, and whether there were no faults."""

    rates: dict[str, float]
    sound: bool


def report(turns: Turns) -> Result:
    table("pods/s, first to last bind, each round", turns, lambda turn: f"{turn.rate:.0f}")
    table("pods with a Scheduled event", turns, lambda turn: str(turn.events))
    title = f"seconds from the last bind to the last event (at most {EVENTS_WITHIN:g})"
    table(title, turns, lambda turn: f"{turn.last_event - turn.last_bind:.1f}")
    title = "CPU time of other processes on this machine: do not compare rounds in which it differs much"
    table(title, turns, lambda turn: f"{turn.disturbance:.0%}")
    rates = _medians(turns)
    faults = [
        f"WRONG: {side}, round {number}: {fault}"
        for side, seen in turns.items()
        for number, turn in enumerate(seen, start=1)
        for fault in turn.faults
    ]
    print("", *faults, sep="\n")
    rounds = max(map(len, turns.values()))
    if rounds < ROUNDS:
        note(f"rounds: {rounds}; the bars apply to the median of {ROUNDS} or more")
    return Result(rates, sound=not faults)


def table(title: str, turns: Turns, cell: Callable[[Turn], str]) -> None:
    print(f"\n{title}")
    for side, seen in turns.items():
        print(f"  {side:<15}" + "".join(f"{cell(turn):>9}" for turn in seen))


def _medians(turns: Turns) -> dict[str, float]:
    print(f"\n{'medians':<17}{'pods/s':>9}{'to last event':>15}{'CPU s':>9}{'companion':>11}{'peak MiB':>10}")
    rates = {}
    for side, seen in turns.items():
        rates[side] = statistics.median(turn.rate for turn in seen)
        to_last_event = statistics.median(turn.rate_to_last_event for turn in seen)
        cpu = statistics.median(turn.usage.cpu_seconds for turn in seen)
        companion = statistics.median(turn.cpu_companion for turn in seen)
        peak = max(turn.usage.peak_bytes for turn in seen) / 2**20
        print(f"  {side:<15}{rates[side]:9.0f}{to_last_event:15.0f}{cpu:9.1f}{companion:11.1f}{peak:10.0f}")
    return rates
