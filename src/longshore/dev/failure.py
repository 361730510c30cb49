"""Reads the output of a failed build or installation: which line to show, and whether the disk was full."""

import errno
import os

from longshore.errors import UserError

# The beginnings of lines that do not say the reason.
_NOISE = ("note:", "hint:", "#", "[notice]", "go: downloading")


def disk_full(output: str) -> bool:
    """Whether a tool ran out of disk space. Go, uv, and pip all print the same words."""
    return os.strerror(errno.ENOSPC).lower() in output.lower()


def last_meaningful_line(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    telling = [line for line in lines if not line.lower().startswith(_NOISE)]
    return (telling or lines or ["no output"])[-1]


def disk_full_error(what: str) -> UserError:
    return UserError(f"no space left on the disk while {what}: free a few GiB, then try again")
