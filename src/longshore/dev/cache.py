"""Where `longshore dev` keeps things: one folder for each user, safe to delete when no cluster runs.

Built programs are kept under their version, named clusters under their name, and the clusters of test
processes under the process that owns them, so that what a killed process left behind can be recognized.
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
    """`$LONGSHORE_CACHE`, else `longshore` in the user's cache folder."""
    if chosen := os.environ.get("LONGSHORE_CACHE"):
        return Path(chosen).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache").absolute() / "longshore"


def private_folder(path: Path) -> Path:
    """Make a folder that only its owner can read: clusters hold keys."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"cannot create {path}: {error.strerror}; set LONGSHORE_CACHE to another folder"
        ) from error
    return path


def require_linux() -> None:
    """Components end with their owner by a Linux mechanism, so nothing else will do."""
    if sys.platform != "linux":
        raise UserError(
            f"longshore dev needs Linux, this is {sys.platform}: use a Linux machine or container"
        )


def remove_folder(path: Path) -> None:
    """Remove a folder of a cluster whose processes have ended."""
    shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def locked(path: Path, *, waiting: Callable[[], None]) -> Iterator[None]:
    """Keep other processes out; `waiting` is called when another one has to be waited for."""
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def require_space(folder: Path, needed: int, *, purpose: str) -> None:
    """Say that the disk is too full before the work begins, not when it is half done."""
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    if (free := shutil.disk_usage(existing).free) < needed:
        raise UserError(
            f"{purpose} needs {needed / GIB:.2g} GiB of free disk space at {folder}, "
            f"only {free / GIB:.2g} GiB are left: free some, then try again"
        )
