"""Builds the programs of the control plane once and keeps them under what they were built from.

Each program is written under another name, flushed, renamed, and only then entered in the manifest with its
size and checksum. So a build that was killed goes on where it stopped, a damaged file is built again, and
programs that are all there are recognised in a millisecond. A lock keeps two builds apart.
"""

import errno
import hashlib
import platform
from dataclasses import dataclass
from pathlib import Path

from longshore.dev.cache import GIB, cache_folder, locked, private_folder, require_linux, require_space
from longshore.dev.component import run_bound
from longshore.dev.failure import disk_full, disk_full_error, last_meaningful_line
from longshore.dev.manifest import Manifest
from longshore.dev.progress import PlainProgress, Progress
from longshore.dev.toolchain import GO_SETTINGS, find_go, go_environment
from longshore.errors import UserError

KUBERNETES_VERSION = "1.36.3"
STAGES = "stages.yaml"

_MAJOR, _MINOR, _ = KUBERNETES_VERSION.split(".")
_MODULES = Path(__file__).with_name("modules")
_STRIP = "-s -w"
_VERSION_PACKAGE = "k8s.io/component-base/version"
# Without these the server calls itself v0.0.0-master.
_KUBERNETES_FLAGS = " ".join(
    [
        _STRIP,
        f"-X {_VERSION_PACKAGE}.gitVersion=v{KUBERNETES_VERSION}",
        f"-X {_VERSION_PACKAGE}.gitMajor={_MAJOR}",
        f"-X {_VERSION_PACKAGE}.gitMinor={_MINOR}",
    ]
)
# Of the stages that KWOK ships: nodes become Ready and renew leases; pods run, finish and go at once.
_STAGE_FOLDERS = ("node/fast", "node/heartbeat-with-lease", "pod/fast")
# A first build takes 5 GiB of Go's own caches (sources and compiled packages) and half a GiB of ours.
_FIRST_BUILD_SPACE = 6 * GIB
_REBUILD_SPACE = 1 * GIB


@dataclass(frozen=True)
class _Program:
    name: str
    module: str
    package: str
    flags: str = _STRIP


_PROGRAMS = [
    _Program("etcd", "etcd", "go.etcd.io/etcd/server/v3"),
    *(
        _Program(name, "kubernetes", f"k8s.io/kubernetes/cmd/{name}", _KUBERNETES_FLAGS)
        for name in ("kube-apiserver", "kubectl", "kube-controller-manager", "kube-scheduler")
    ),
    _Program("kwok", "kwok", "sigs.k8s.io/kwok/cmd/kwok"),
]
_FILES = [*(program.name for program in _PROGRAMS), STAGES]


def programs_folder() -> Path:
    """Where the programs are, or will be: another folder whenever anything they come from changes."""
    digest = hashlib.sha256(f"{platform.machine()} {GO_SETTINGS} {_STAGE_FOLDERS}".encode())
    for program in _PROGRAMS:
        digest.update(repr(program).encode())
    for module in sorted({program.module for program in _PROGRAMS}):
        for name in ("go.mod", "go.sum"):
            digest.update((_MODULES / module / name).read_bytes())
    return cache_folder() / "control-plane" / f"{KUBERNETES_VERSION}-{digest.hexdigest()[:12]}"


def missing() -> list[str]:
    """The files that have to be built, or built again."""
    manifest = Manifest(programs_folder())
    return [name for name in _FILES if not manifest.intact(name)]


def build(progress: Progress | None = None) -> Path:
    """The folder with every program of the control plane, built now where something is missing."""
    require_linux()
    folder = programs_folder()
    if not missing():
        return folder
    progress = progress or PlainProgress()
    private_folder(folder)
    with locked(folder / "lock", waiting=lambda: progress.note("waiting for another build to finish")):
        needed = missing()  # another build may have made them meanwhile
        if needed:
            _build(folder, needed, progress)
    return folder


def _build(folder: Path, needed: list[str], progress: Progress) -> None:
    go = find_go(progress)
    environment = go_environment(go)
    space = _FIRST_BUILD_SPACE if len(needed) == len(_FILES) else _REBUILD_SPACE
    for place in (folder, *_go_caches(go, environment)):
        require_space(place, space, purpose="building the control plane")
    manifest = Manifest(folder)
    programs = {program.name: program for program in _PROGRAMS}
    for number, name in enumerate(needed, start=1):
        try:
            with progress.step(number, len(needed), name), manifest.writing(name) as target:
                if name == STAGES:
                    _write_stages(target, go, environment)
                else:
                    _compile(programs[name], target, go, environment, log=folder / f"{name}.log")
        except OSError as error:
            if error.errno == errno.ENOSPC:
                raise disk_full_error(f"building {name}") from error
            raise


def _compile(program: _Program, target: Path, go: Path, environment: dict[str, str], *, log: Path) -> None:
    command = [str(go), "build", "-ldflags", program.flags]
    done = run_bound(
        [*command, "-o", str(target), program.package], cwd=_MODULES / program.module, env=environment
    )
    if done.returncode == 0:
        log.unlink(missing_ok=True)
        return
    if disk_full(done.stderr):
        raise disk_full_error(f"building {program.name}")
    log.write_text(done.stderr)
    raise UserError(f"{program.name} could not be built: {last_meaningful_line(done.stderr)}; log: {log}")


def _write_stages(target: Path, go: Path, environment: dict[str, str]) -> None:
    command = [str(go), "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kwok"]
    done = run_bound(command, cwd=_MODULES / "kwok", env=environment)
    if done.returncode:
        raise UserError(f"the stages of KWOK could not be found: {last_meaningful_line(done.stderr)}")
    stages = Path(done.stdout.strip()) / "kustomize" / "stage"
    files = [
        file
        for part in _STAGE_FOLDERS
        for file in sorted((stages / part).glob("*.yaml"))
        if file.name != "kustomization.yaml"
    ]
    target.write_text("\n---\n".join(file.read_text() for file in files))


def _go_caches(go: Path, environment: dict[str, str]) -> list[Path]:
    done = run_bound([str(go), "env", "GOCACHE", "GOMODCACHE"], cwd=_MODULES / "etcd", env=environment)
    return [Path(line) for line in done.stdout.split("\n") if line]
