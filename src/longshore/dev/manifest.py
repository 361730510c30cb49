"""Which files of a folder are whole: written to the end, and not touched since."""

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TypedDict


class _Entry(TypedDict):
    size: int
    modified: int
    sha256: str


class Manifest:
    """The list of the whole files of a folder, kept in the folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = folder / "manifest.json"
        self._entries: dict[str, _Entry] = {}
        # No list, or one that was cut off, is an empty list.
        with contextlib.suppress(OSError, ValueError):
            self._entries = json.loads(self._file.read_text())

    def intact(self, name: str) -> bool:
        """Whether the file is as it was written; read only when its time differs, as in a copied folder."""
        entry = self._entries.get(name)
        try:
            stat = (self._folder / name).stat()
        except OSError:
            return False
        if entry is None or stat.st_size != entry["size"]:
            return False
        return stat.st_mtime_ns == entry["modified"] or _checksum(self._folder / name) == entry["sha256"]

    @contextlib.contextmanager
    def writing(self, name: str) -> Iterator[Path]:
        """Where to write the file; it gets its name and its entry when the block ends without an error."""
        partial = self._folder / f".{name}.partial"
        try:
            yield partial
            _flush(partial)
            stat = partial.stat()
            entry = _Entry(size=stat.st_size, modified=stat.st_mtime_ns, sha256=_checksum(partial))
            partial.rename(self._folder / name)
        finally:
            partial.unlink(missing_ok=True)
        self._entries[name] = entry
        written = self._file.with_name(".manifest.json.partial")
        written.write_text(json.dumps(self._entries, indent=1))
        _flush(written)
        written.rename(self._file)


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _flush(path: Path) -> None:
    """A file that is named must survive a power cut whole."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
