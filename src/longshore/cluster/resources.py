"""Amounts of resources in the units of the columns: cpu in thousandths, everything else in whole units.

A pod itself uses a resource: one of the node's `pods`. Two problems are handled here: quantities that the API
server would reject (invalid or negative) but that a file can contain, and amounts that would overflow a
column.
"""

from collections.abc import Mapping
from functools import lru_cache

from longshore.api import InvalidQuantity, milli_value, value

# The columns that every cluster has. Others follow in the order in which they are first seen.
PODS, CPU, MEMORY, EPHEMERAL_STORAGE = range(4)
FIXED_COLUMNS = ("pods", "cpu", "memory", "ephemeral-storage")

# No real amount comes close to this (8 PiB, or 9 trillion cores), and a thousand such pods on one node still
# add up within 64 bits. A node has at least one unit less, so that a pod that requests this much fits on no
# node.
LARGEST_REQUEST = 2**53
LARGEST_ALLOCATABLE = LARGEST_REQUEST - 1

_INT64_MAX = 2**63 - 1


def counted(resource: str) -> bool:
    """Whether requests for this resource count: built-in ones, huge pages, and all names with a domain."""
    return (
        resource in FIXED_COLUMNS
        or "/" in resource
        or resource.startswith(("hugepages-", "attachable-volumes-"))
    )


@lru_cache(maxsize=4096)
def thousandths(text: str) -> int:
    """Return the quantity times 1000, so that the requests of containers are added up before rounding.

    The result is exact, because the API server rounds every quantity up to thousandths.
    """
    amount = milli_value(text)
    if amount < 0:
        raise InvalidQuantity(f"{text!r} is negative")
    return amount if amount < _INT64_MAX else value(text) * 1000


def column_amount(resource: str, amount_in_thousandths: int) -> int:
    """Return the amount in the unit of the resource's column, rounded up."""
    amount = amount_in_thousandths if resource == "cpu" else -(-amount_in_thousandths // 1000)
    return min(amount, LARGEST_REQUEST)


def allocatable_amounts(allocatable: Mapping[str, str]) -> dict[str, int]:
    """Return what a node offers. An invalid quantity counts as 0, since no pod can rely on it."""
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
