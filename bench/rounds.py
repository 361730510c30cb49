"""The rounds of a contest. First the best ceiling is determined, then the sides take turns."""

import sys
from collections.abc import Sequence

from bench.contest import Contest, Side, Turn

from longshore.errors import UserError

# The bars apply to the median of at least this many rounds.
ROUNDS = 5
_IN_FLIGHT = (16, 48, 96)
# The maximum number of probes of each, so that one bad moment does not decide.
_PROBES = 2
_BINDS_IN_FLIGHT = 48

Turns = dict[str, list[Turn]]


def note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


async def take_turns(contest: Contest, schedulers: Sequence[Side], rounds: int) -> Turns:
    """Return the turns of each scheduler and of the ceiling."""
    note("looking for the ceiling")
    in_flight = await _best_in_flight(contest, probes=min(_PROBES, rounds))
    return await alternate(contest, [*schedulers, contest.ceiling(in_flight)], rounds)


async def alternate(contest: Contest, sides: Sequence[Side], rounds: int) -> Turns:
    """Return the turns of the sides. The order changes in each round, so that no side is always the first."""
    turns: Turns = {side.name: [] for side in sides}
    for number in range(rounds):
        first = number % len(sides)
        for side in (*sides[first:], *sides[:first]):
            turn = await contest.turn(side)
            turns[side.name].append(turn)
            note(f"round {number + 1} of {rounds}: {side.name:<14} {turn.rate:6.0f} pods/s")
    return turns


async def _best_in_flight(contest: Contest, *, probes: int) -> int:
    """Return the number of writes in flight with the highest rate. Binds alone come first, as a warm-up."""
    rates = dict.fromkeys(_IN_FLIGHT, 0.0)
    for limit, events in [(_BINDS_IN_FLIGHT, False), *((limit, True) for limit in _IN_FLIGHT * probes)]:
        turn = await contest.turn(contest.ceiling(limit, events=events))
        if turn.faults:
            raise UserError(f"the ceiling failed: {'; '.join(turn.faults)}")
        what = "a bind and an event for each pod" if events else "only binds"
        print(f"ceiling {turn.rate:6.0f} pods/s: {what}, {limit} in flight", flush=True)
        if events:
            rates[limit] = max(rates[limit], turn.rate)
    return max(rates, key=lambda limit: rates[limit])
