"""Amounts of resources as the columns count them: cpu in thousandths, all else in whole units.

A pod is itself a resource here: it takes one of the node's `pods`. What the API server would never admit (a
quantity that is no quantity, a negative one) can reach us through a foreign file, and amounts beyond any real
machine must not overflow a column: both are settled at this edge.
"""

from collections.abc import Mapping
from functools import lru_cache

from longshore.api import InvalidQuantity, milli_value, value

# The columns that every cluster has; others follow in the order in which they appear.
PODS, CPU, MEMORY, EPHEMERAL_STORAGE = range(4)
FIXED_COLUMNS = ("pods", "cpu", "memory", "ephemeral-storage")

# No real amount comes near it (8 PiB, or 9 trillion cores), and a thousand pods of this size on one node
# still add up within 64 bits. A node's amount stays one below, so that a pod which asks for this much fits
# nowhere.
LARGEST_REQUEST = 2**53
LARGEST_ALLOCATABLE = LARGEST_REQUEST - 1

_INT64_MAX = 2**63 - 1


def counted(resource: str) -> bool:
    """Whether it takes room: the built-in resources, huge pages, and all names with a domain."""
    return (
        resource in FIXED_COLUMNS
        or "/" in resource
        or resource.startswith(("hugepages-", "attachable-volumes-"))
    )


@lru_cache(maxsize=4096)
def thousandths(text: str) -> int:
    """The quantity times 1000, so that containers add up before anything is rounded.

    The API server rounds every quantity up to thousandths, hence this is exact.
    """
    amount = milli_value(text)
    if amount < 0:
        raise InvalidQuantity(f"{text!r} is negative")
    return amount if amount < _INT64_MAX else value(text) * 1000


def column_amount(resource: str, amount_in_thousandths: int) -> int:
    """The amount in the unit of the resource's column, rounded up."""
    amount = amount_in_thousandths if resource == "cpu" else -(-amount_in_thousandths // 1000)
    return min(amount, LARGEST_REQUEST)


def allocatable_amounts(allocatable: Mapping[str, str]) -> dict[str, int]:
    """What a node offers. A quantity that cannot be read offers nothing: no pod can rely on it."""
    amounts = {}
    for resource, text in allocatable.items():
        if not counted(resource):
            continue
        try:
            amount = milli_value(text) if resource == "cpu" else value(text)
        except InvalidQuantity:
            amount = 0
        amounts[resource] = min(max(amount, 0), LARGEST_ALLOCATABLE)
    return amounts
