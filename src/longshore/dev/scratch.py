"""Folders of clusters without a name: those of test processes, which may be killed at any moment.

The folder's name carries its owner, so the next start can tell which ones nobody owns any more.
"""

import secrets
from pathlib import Path

from longshore.dev.cache import cache_folder, private_folder, remove_folder
from longshore.dev.owner import Owner


def new_folder() -> Path:
    """A new folder that this process owns; those of ended processes are removed on the way."""
    root = private_folder(cache_folder() / "scratch")
    for folder in root.iterdir():
        owner = Owner.parse(folder.name.rpartition("-")[0])
        if owner is None or not owner.alive:
            remove_folder(folder)
    return private_folder(root / f"{Owner.current()}-{secrets.token_hex(4)}")
