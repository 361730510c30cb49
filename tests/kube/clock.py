"""A clock that stands still until a test sets it forward."""

from datetime import UTC, datetime


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now

    def stamp(self, later: float) -> str:
        return datetime.fromtimestamp(self.now + later, UTC).isoformat()
