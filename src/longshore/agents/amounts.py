"""Arithmetic that works on arrays for many nodes and on plain numbers for one node.

numpy accepts plain numbers too, but a call costs more than the calculation, and agents are asked about a
single node after every pod. Operators need no such help.
"""

import math
from typing import Any

import numpy as np

# An array for many nodes, or a number for one.
Amount = Any


def is_known(amount: Amount) -> Amount:
    return amount == amount  # noqa: PLR0124 - NaN alone is unlike itself


def either(condition: Amount, then: Amount, otherwise: Amount) -> Amount:
    """Select `then` where the condition holds, and `otherwise` elsewhere."""
    if isinstance(condition, np.ndarray):
        return np.where(condition, then, otherwise)
    return then if condition else otherwise


def at_most(amount: Amount, limit: float) -> Amount:
    if isinstance(amount, np.ndarray):
        return np.minimum(amount, limit)
    return limit if amount > limit else amount


def root(amount: Amount) -> Amount:
    return np.sqrt(amount) if isinstance(amount, np.ndarray) else math.sqrt(amount)


def floor(amount: Amount) -> Amount:
    return np.floor(amount) if isinstance(amount, np.ndarray) else math.floor(amount)


def whole(amount: Amount) -> Amount:
    """Truncate to integers."""
    return amount.astype(np.int64) if isinstance(amount, np.ndarray) else int(amount)
