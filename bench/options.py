"""The command line that contests share: how many nodes, pods and rounds, and of which Longshore."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, NoReturn

from bench.contest import ROOT
from bench.rounds import ROUNDS
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
    parser.add_argument("--nodes", type=int, default=nodes)
    parser.add_argument("--pods", type=int, default=5000, help="pods in each turn")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--quick", action="store_true", help="a small round, to see that it works")
    parser.add_argument(
        "--longshore",
        type=Path,
        default=ROOT,
        metavar="CHECKOUT",
        help="the Longshore to measure, if not this",
    )
    return parser


def sizes(options: argparse.Namespace) -> Sizes:
    """Raises UserError if nothing can be measured with them."""
    if options.quick:
        return _QUICK
    if min(options.nodes, options.rounds) < 1 or options.pods < 2:
        raise UserError("a measurement takes one node, one round and two pods at least")
    if options.pods > options.nodes * PODS_PER_NODE:
        raise UserError(
            f"{options.nodes} nodes have room for {options.nodes * PODS_PER_NODE} pods: add nodes"
        )
    return Sizes(options.nodes, options.pods, options.rounds)


def run(measure: Callable[[argparse.Namespace], bool], options: argparse.Namespace) -> NoReturn:
    """Measure and end: with 0 if all was as it must be."""
    try:
        sound = measure(options)
    except UserError as error:
        sys.exit(f"error: {error}")
    sys.exit(0 if sound else 1)
