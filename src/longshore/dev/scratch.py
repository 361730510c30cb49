"""Folders of unnamed clusters, which belong to test processes and may be left behind when these are killed.

The name of a folder includes its owner, so the next start can recognize and remove those of ended processes.
"""

import secrets
from pathlib import Path

from longshore.dev.cache import cache_folder, private_folder, remove_folder
from longshore.dev.owner import Owner


def new_folder() -> Path:
    """Return a new folder that this process owns, after removing those of ended processes."""
    root = private_folder(cache_folder() / "scratch")
    for folder in root.iterdir():
        owner = Owner.parse(folder.name.rpartition("-")[0])
        if owner is None or not owner.alive:
            remove_folder(folder)
    return private_folder(root / f"{Owner.current()}-{secrets.token_hex(4)}")
