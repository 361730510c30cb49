"""What processes have cost so far, by the kernel's account, and what the machine did besides."""

import os
from pathlib import Path
from typing import NamedTuple

_TICKS = os.sysconf("SC_CLK_TCK")


class Usage(NamedTuple):
    cpu_seconds: float
    peak_bytes: int


def usage(*sessions: int) -> Usage:
    """CPU time and peak memory of all processes of the sessions: a scheduler may have more than one."""
    cpu, peak = 0.0, 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            # The name of the program, field 2, is in brackets and may hold blanks and brackets itself.
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) not in sessions:
                continue
            status = (folder / "status").read_text()
        except OSError:
            continue  # it has ended since
        # Fields 14 to 17: in user mode and in the kernel, and the same of children that have ended.
        cpu += sum(map(int, fields[11:15])) / _TICKS
        peak += sum(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmHWM:"))
    return Usage(cpu, peak)


def busy_seconds() -> float:
    """CPU time that the machine has spent on anything, the host's other guests included."""
    user, nice, system, _, _, irq, softirq, steal, *_ = map(
        int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    )
    return (user + nice + system + irq + softirq + steal) / _TICKS
