"""When to repeat a write that failed: the wait doubles each time, up to a limit."""

# Seconds until the first repetition, and the limit for writes that nothing waits for.
_FIRST = 1.0
LONGEST = 300.0


class Backoff:
    def __init__(self, *, longest: float) -> None:
        self._longest = longest
        self._wait = _FIRST
        # The write is not repeated before this time.
        self.until = float("-inf")

    @property
    def lasts(self) -> bool:
        """Whether the write has failed more than once."""
        return self._wait > 2 * _FIRST

    def failed(self, *, now: float) -> None:
        self.until = now + self._wait
        self._wait = min(2 * self._wait, self._longest)

    def succeeded(self) -> None:
        self.until, self._wait = float("-inf"), _FIRST
