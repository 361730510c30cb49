"""The CPU time and memory of processes, and the CPU time of the whole machine, from /proc."""

import os
from pathlib import Path
from typing import NamedTuple

_TICKS = os.sysconf("SC_CLK_TCK")


class Usage(NamedTuple):
    cpu_seconds: float
    peak_bytes: int


def usage(*sessions: int) -> Usage:
    """Return the CPU time and peak memory of all processes of the sessions. A scheduler can have several."""
    cpu, peak = 0.0, 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            # Field 2, the name of the program, is in parentheses, and can contain blanks and parentheses.
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) not in sessions:
                continue
            status = (folder / "status").read_text()
        except OSError:
            continue  # the process has ended
        # Fields 14 to 17: the time in user mode and in the kernel, and the same for children that have ended.
        cpu += sum(map(int, fields[11:15])) / _TICKS
        peak += sum(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmHWM:"))
    return Usage(cpu, peak)


def busy_seconds() -> float:
    """Return the CPU time that the machine has spent on anything, including other guests of its host."""
    user, nice, system, _, _, irq, softirq, steal, *_ = map(
        int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    )
    return (user + nice + system + irq + softirq + steal) / _TICKS
