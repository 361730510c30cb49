"""The command line of all contests: the number of nodes, pods and rounds, and the Longshore to measure."""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, NoReturn

from bench.contest import ROOT
from bench.rounds import ROUNDS, note
from bench.workloads import PODS_PER_NODE

from longshore.errors import UserError


class Sizes(NamedTuple):
    nodes: int
    pods: int
    rounds: int


_QUICK = Sizes(nodes=100, pods=200, rounds=1)


def arguments(description: str | None, *, nodes: int) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=nodes, help="number of nodes")
    parser.add_argument("--pods", type=int, default=5000, help="pods in each turn")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="number of rounds")
    parser.add_argument(
        "--quick", action="store_true", help="one small round, to check that the benchmark works"
    )
    parser.add_argument(
        "--longshore",
        type=Path,
        default=ROOT,
        metavar="CHECKOUT",
        help="measure the Longshore of this checkout instead",
    )
    return parser


def sizes(options: argparse.Namespace) -> Sizes:
    """Return the sizes to measure. Raises UserError if they are too small, or the pods do not fit."""
    if options.quick:
        return _QUICK
    if min(options.nodes, options.rounds) < 1 or options.pods < 2:
        raise UserError("a measurement needs at least one node, one round and two pods")
    if options.pods > options.nodes * PODS_PER_NODE:
        raise UserError(
            f"{options.nodes} nodes have room for {options.nodes * PODS_PER_NODE} pods: add nodes"
        )
    return Sizes(options.nodes, options.pods, options.rounds)


def run(measure: Callable[[argparse.Namespace], bool], options: argparse.Namespace) -> NoReturn:
    """Measure, and exit with 0 if the measurement is valid and no bar is missed."""
    began = time.monotonic()
    try:
        sound = measure(options)
    except UserError as error:
        sys.exit(f"error: {error}")
    note(f"{time.monotonic() - began:.0f} s in all")
    sys.exit(0 if sound else 1)
