"""Durations as Go writes and reads them ("2m0s", "1.5h", "300ms"), in seconds."""

import re

_UNIT = "(ns|us|µs|μs|ms|s|m|h)"
_PART = re.compile(rf"([0-9]*)\.?([0-9]*){_UNIT}")
_FORM = re.compile(rf"[-+]?(?:0|(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+){_UNIT})+)")
_NANOSECONDS = {"ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9}
_NANOSECONDS["h"] = 60 * _NANOSECONDS["m"]
# Go counts nanoseconds in 64 bits: a number with more digits than this is out of range in any unit.
_LIMIT = 2**63
_DIGITS = len(str(_LIMIT))


def parse_duration(text: str) -> float | None:
    """Return the duration in seconds, or None if Go's `time.ParseDuration` rejects the text."""
    if not _FORM.fullmatch(text):
        return None
    total = 0
    for whole, fraction, unit in _PART.findall(text):
        significant = whole.lstrip("0")
        if len(significant) > _DIGITS:
            return None
        total += int(significant or 0) * _NANOSECONDS[unit] + _part_of(fraction, _NANOSECONDS[unit])
    if text.startswith("-"):
        return -total / 10**9 if total <= _LIMIT else None
    return total / 10**9 if total < _LIMIT else None


def _part_of(fraction: str, unit: int) -> int:
    """Return the nanoseconds of the digits after the decimal point, with Go's rounding errors."""
    digits = fraction[:_DIGITS]
    return int(int(digits or 0) * (unit / 10 ** len(digits)))


def format_duration(seconds: float) -> str:
    """Return the duration as Go prints it, rounded to milliseconds: 2m0s, 1.5s, 300ms."""
    milliseconds = round(abs(seconds) * 1000)
    if not milliseconds:
        return "0s"
    sign = "-" if seconds < 0 else ""
    if milliseconds < 1000:
        return f"{sign}{milliseconds}ms"
    whole, rest = divmod(milliseconds, 1000)
    minutes, whole = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    fraction = f".{rest:03}".rstrip("0") if rest else ""
    larger = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
    return f"{sign}{larger}{whole}{fraction}s"
