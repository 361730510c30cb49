"""Kubernetes quantities ("500m", "1.5Gi", "2e3") as exact integers, rounded up as Kubernetes does."""

import re
from fractions import Fraction
from functools import lru_cache

_FORM = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:([eE][+-]?\d{1,3})|([numkMGTPE]|[KMGTPE]i)?)")
_SCALE = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "": Fraction(1),
    "k": Fraction(10**3),
    **{letter: Fraction(10 ** (3 * power)) for power, letter in enumerate("MGTPE", 2)},
    **{f"{letter}i": Fraction(2 ** (10 * power)) for power, letter in enumerate("KMGTPE", 1)},
}
_INT64_MAX = 2**63 - 1


class InvalidQuantity(ValueError):
    """A text that the API server would not accept as a quantity."""


def _ceiling(amount: Fraction) -> int:
    return max(-_INT64_MAX, min(_INT64_MAX, -(-amount.numerator // amount.denominator)))


@lru_cache(maxsize=4096)
def _parse(text: str) -> Fraction:
    match = _FORM.fullmatch(text)
    if match is None:
        raise InvalidQuantity(f"{text!r} is not a quantity; write a number with a suffix such as 500m or 2Gi")
    number, exponent, suffix = match.groups()
    scale = Fraction(10) ** int(exponent[1:]) if exponent else _SCALE[suffix or ""]
    return Fraction(number) * scale


@lru_cache(maxsize=4096)
def value(text: str) -> int:
    """Return the quantity in whole units (bytes, devices), rounded up and limited to 64 bits."""
    return _ceiling(_parse(text))


@lru_cache(maxsize=4096)
def milli_value(text: str) -> int:
    """Return the quantity in thousandths (millicores), rounded up and limited to 64 bits."""
    return _ceiling(_parse(text) * 1000)
