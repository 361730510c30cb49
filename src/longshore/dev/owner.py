"""The process that owns something, distinguished from a later process with the same PID."""

import os
from pathlib import Path
from typing import NamedTuple, Self


class Owner(NamedTuple):
    """A process, identified by its PID and its start time in clock ticks since boot."""

    pid: int
    started: int

    @classmethod
    def current(cls) -> Self:
        return cls.of(os.getpid())

    @classmethod
    def of(cls, pid: int) -> Self:
        return cls(pid, _start_ticks(pid) or 0)

    @classmethod
    def parse(cls, text: str) -> Self | None:
        pid, _, started = text.partition("-")
        return cls(int(pid), int(started)) if pid.isdecimal() and started.isdecimal() else None

    @property
    def alive(self) -> bool:
        return _start_ticks(self.pid) == self.started

    def __str__(self) -> str:
        return f"{self.pid}-{self.started}"


def _start_ticks(pid: int) -> int | None:
    """Return field 22 of /proc/PID/stat, or None if the process does not exist or has ended."""
    try:
        # Field 2, the name of the program, is in parentheses and may itself contain spaces and parentheses.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])
