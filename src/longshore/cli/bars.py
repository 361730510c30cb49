"""Bars that show how full a node is, drawn with blocks or, where they cannot be printed, in ASCII."""

from rich.text import Text

_WIDTH = 18


class Bars:
    """Draws bars for an output with this encoding."""

    def __init__(self, encoding: str) -> None:
        blocks = encoding.lower().startswith("utf")
        self._full, self._added, self._empty = ("█", "▓", "░") if blocks else ("#", "+", ".")
        self._to = "→" if blocks else "->"

    def becoming(self, now: int, planned: int, allocatable: int) -> Text:
        """A bar of the amount used now, with the planned amount on top of it."""
        bar = self._bar(now, planned, allocatable).append(f" {_share(now, allocatable):4.0%}")
        return bar if now == planned else bar.append(f" {self._to} {_share(planned, allocatable):.0%}")

    def counts(self, now: int, planned: int) -> str:
        return f"{now:,}" if now == planned else f"{now:,} {self._to} {planned:,}"

    def _bar(self, now: int, planned: int, allocatable: int) -> Text:
        share = _share(planned, allocatable)
        style = "red" if share > 0.95 else "yellow" if share > 0.75 else "green"
        filled = min(_WIDTH, round(_share(now, allocatable) * _WIDTH))
        whole = min(_WIDTH, round(share * _WIDTH))
        return Text.assemble(
            (self._full * filled, style),
            (self._added * (whole - filled), style),
            (self._empty * (_WIDTH - whole), "dim"),
        )


def _share(amount: int, allocatable: int) -> float:
    return amount / allocatable if allocatable else 0.0
