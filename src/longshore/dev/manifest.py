"""Records which files of a folder are intact: completely written, and not changed since."""

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
    """The list of the intact files of a folder, stored in the folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = folder / "manifest.json"
        self._entries: dict[str, _Entry] = {}
        # A missing or truncated list counts as empty.
        with contextlib.suppress(OSError, ValueError):
            self._entries = json.loads(self._file.read_text())

    def intact(self, name: str) -> bool:
        """Whether the file is as it was written. It is read only if its time differs."""
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
        """Yield the path to write to. The file gets its name and entry if the block ends without an error."""
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
    """Write the file to disk, so that it is complete after a power failure."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
