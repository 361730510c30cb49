"""The cache of `longshore dev`: one folder for each user, safe to delete when no cluster runs.

It has folders for built programs by version, for named clusters by name, and for the clusters of test
processes by the process that owns them, so that the remains of a killed process can be recognized.
"""

import contextlib
import fcntl
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from longshore.errors import UserError

GIB = 1 << 30


def cache_folder() -> Path:
    """Return `$LONGSHORE_CACHE`, or else `longshore` in the user's cache folder."""
    if chosen := os.environ.get("LONGSHORE_CACHE"):
        return Path(chosen).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache").absolute() / "longshore"


def private_folder(path: Path) -> Path:
    """Create a folder that only its owner can read, because clusters contain keys."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"cannot create {path}: {error.strerror}; set LONGSHORE_CACHE to another folder"
        ) from error
    return path


def require_linux() -> None:
    """Raise unless this is Linux: components end with their owner by a mechanism that only Linux has."""
    if sys.platform != "linux":
        raise UserError(
            f"longshore dev needs Linux, but this is {sys.platform}: use a Linux machine or container"
        )


def remove_folder(path: Path) -> None:
    """Remove a folder of a cluster whose processes have ended."""
    shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def locked(path: Path, *, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold a lock that excludes other processes. `waiting` is called if another one holds it."""
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def require_space(folder: Path, needed: int, *, purpose: str) -> None:
    """Raise if the disk has too little space, before the work begins rather than halfway through."""
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    if (free := shutil.disk_usage(existing).free) < needed:
        raise UserError(
            f"{purpose} needs {needed / GIB:.2g} GiB of free disk space at {folder}, "
            f"but only {free / GIB:.2g} GiB are left: free some, then try again"
        )
