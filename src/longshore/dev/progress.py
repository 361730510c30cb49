"""The progress of a long build: a live line with a clock on a terminal, plain lines everywhere else."""

import contextlib
import sys
import time
from collections.abc import Iterator
from typing import Protocol


class Progress(Protocol):
    """Reports the progress of a build."""

    def note(self, text: str) -> None:
        """Report something that is not a step."""

    def step(self, number: int, total: int, name: str) -> contextlib.AbstractContextManager[None]:
        """Report a step, which lasts as long as the block."""


class PlainProgress:
    """Writes lines to stderr, for logs and CI: one when a step begins and one when it is done."""

    def note(self, text: str) -> None:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()

    @contextlib.contextmanager
    def step(self, number: int, total: int, name: str) -> Iterator[None]:
        self.note(f"[{number}/{total}] {name} …")
        start = time.monotonic()
        yield
        self.note(f"[{number}/{total}] {name} {time.monotonic() - start:.0f} s")


class TerminalProgress:
    """Shows a spinner and the elapsed time of the current step. Finished steps stay above it."""

    def __init__(self) -> None:
        from rich.console import Console

        self._console = Console(stderr=True)

    def note(self, text: str) -> None:
        self._console.print(text, highlight=False)

    @contextlib.contextmanager
    def step(self, number: int, total: int, name: str) -> Iterator[None]:
        from rich.progress import Progress as Bar
        from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

        text = f"\\[{number}/{total}] {name}"
        start = time.monotonic()
        with Bar(
            SpinnerColumn(), TextColumn(text), TimeElapsedColumn(), console=self._console, transient=True
        ) as bar:
            bar.add_task(name, total=None)
            yield
        self._console.print(f"{text} [dim]{time.monotonic() - start:.0f} s", highlight=False)


def progress_for_stderr() -> Progress:
    return TerminalProgress() if sys.stderr.isatty() else PlainProgress()
