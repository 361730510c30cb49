"""A fake Go compiler, since a real build takes minutes."""

import stat
from pathlib import Path

import pytest

# It supports the commands that `build` runs, writes 1 KiB for each program, logs each one to $FAKE_GO_LOG,
# and fails with the message $FAKE_GO_ERROR if that is set.
_FAKE_GO = """#!/bin/sh
case "$1 $2" in
"env GOVERSION") echo "${FAKE_GO_VERSION:-go1.26.0}"; exit ;;
"env GOCACHE") echo "$FAKE_GO_HOME"; echo "$FAKE_GO_HOME"; exit ;;
"list -m") echo "$FAKE_GO_HOME/kwok"; exit ;;
esac
while [ "$1" != -o ]; do shift; done
target=$2; package=$3
echo "$package" >> "$FAKE_GO_LOG"
[ -n "$FAKE_GO_SLOW" ] && head -c 512 /dev/zero > "$target" && sleep "$FAKE_GO_SLOW"
if [ -n "$FAKE_GO_ERROR" ]; then printf '%s\\n' "$FAKE_GO_ERROR" >&2; exit 1; fi
head -c "${FAKE_GO_SIZE:-1024}" /dev/zero > "$target" && chmod +x "$target"
"""


class FakeGo:
    """A fake Go compiler that is first on PATH, with its own cache folder to build into."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.cache = folder / "cache"
        self._log = folder / "compiled"
        self._monkeypatch = monkeypatch
        programs = folder / "bin"
        programs.mkdir()
        self.program = programs / "go"
        self.program.write_text(_FAKE_GO)
        self.program.chmod(self.program.stat().st_mode | stat.S_IXUSR)
        for part in ("node/fast", "node/heartbeat-with-lease", "pod/fast"):
            stage = folder / "kwok" / "kustomize" / "stage" / part
            stage.mkdir(parents=True)
            (stage / "stage.yaml").write_text(f"kind: Stage # {part}\n")
        monkeypatch.setenv("LONGSHORE_CACHE", str(self.cache))
        monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
        monkeypatch.setenv("FAKE_GO_HOME", str(folder))
        monkeypatch.setenv("FAKE_GO_LOG", str(self._log))

    def set(self, **settings: str) -> None:
        """Set FAKE_GO_… variables by the rest of their names; an empty value unsets one."""
        for name, value in settings.items():
            self._monkeypatch.setenv(f"FAKE_GO_{name.upper()}", value)

    def compiled(self) -> list[str]:
        """Return the packages compiled since the last call, by the last part of their paths."""
        lines = self._log.read_text().split() if self._log.exists() else []
        self._log.unlink(missing_ok=True)
        return [line.rpartition("/")[2] for line in lines]
