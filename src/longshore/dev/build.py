"""Builds the programs of the control plane, or Prometheus, once, and caches them by a hash of their sources.

Each program is written under another name, flushed, renamed, and only then added to the manifest with its
size and checksum. So a build that was killed continues where it stopped, a damaged file is built again, and a
complete build is recognized in a millisecond. A lock prevents two builds at the same time.
"""

import errno
import hashlib
import platform
from dataclasses import dataclass, field
from pathlib import Path

from longshore.dev.cache import GIB, cache_folder, locked, private_folder, require_linux, require_space
from longshore.dev.component import run_bound
from longshore.dev.failure import disk_full, disk_full_error, last_meaningful_line
from longshore.dev.manifest import Manifest
from longshore.dev.progress import PlainProgress, Progress
from longshore.dev.toolchain import GO_SETTINGS, find_go, go_environment
from longshore.errors import UserError

KUBERNETES_VERSION = "1.36.3"
PROMETHEUS_VERSION = "3.15.0"
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
# The stages of KWOK that are used: nodes become Ready and renew leases; pods run, finish, and end
# immediately.
_STAGE_FOLDERS = ("node/fast", "node/heartbeat-with-lease", "pod/fast")
# A first build takes 5 GiB in Go's caches (sources and compiled packages), and half a GiB in ours.
_FIRST_BUILD_SPACE = 6 * GIB
_REBUILD_SPACE = 1 * GIB
# A first build of Prometheus takes 1.6 GiB, some of which the control plane needs too.
_PROMETHEUS_SPACE = 2 * GIB


@dataclass(frozen=True)
class _Program:
    name: str
    module: str
    package: str
    flags: str = _STRIP
    tags: str = field(default="", repr=False)


@dataclass(frozen=True)
class Bundle:
    """Programs that are built together into one folder."""

    title: str
    name: str
    version: str
    programs: tuple[_Program, ...]
    others: tuple[str, ...] = ()

    @property
    def files(self) -> list[str]:
        return [*(program.name for program in self.programs), *self.others]


CONTROL_PLANE = Bundle(
    "the control plane",
    "control-plane",
    KUBERNETES_VERSION,
    (
        _Program("etcd", "etcd", "go.etcd.io/etcd/server/v3"),
        *(
            _Program(name, "kubernetes", f"k8s.io/kubernetes/cmd/{name}", _KUBERNETES_FLAGS)
            for name in ("kube-apiserver", "kubectl", "kube-controller-manager", "kube-scheduler")
        ),
        _Program("kwok", "kwok", "sigs.k8s.io/kwok/cmd/kwok"),
    ),
    others=(STAGES,),
)
# Without the web pages and the service discovery for clouds, which are not used here.
PROMETHEUS = Bundle(
    "Prometheus",
    "prometheus",
    PROMETHEUS_VERSION,
    (
        _Program(
            "prometheus",
            "prometheus",
            "github.com/prometheus/prometheus/cmd/prometheus",
            f"{_STRIP} -X github.com/prometheus/common/version.Version={PROMETHEUS_VERSION}",
            tags="remove_all_sd",
        ),
    ),
)


def programs_folder(bundle: Bundle = CONTROL_PLANE) -> Path:
    """Return the folder of the programs. Its name changes with anything that they depend on."""
    digest = hashlib.sha256(f"{platform.machine()} {GO_SETTINGS} {_STAGE_FOLDERS}".encode())
    for program in bundle.programs:
        digest.update(repr(program).encode() + program.tags.encode())
    for module in sorted({program.module for program in bundle.programs}):
        for name in ("go.mod", "go.sum"):
            digest.update((_MODULES / module / name).read_bytes())
    return cache_folder() / bundle.name / f"{bundle.version}-{digest.hexdigest()[:12]}"


def missing(bundle: Bundle = CONTROL_PLANE) -> list[str]:
    """Return the files that must be built, or built again."""
    manifest = Manifest(programs_folder(bundle))
    return [name for name in bundle.files if not manifest.intact(name)]


def build(progress: Progress | None = None, *, bundle: Bundle = CONTROL_PLANE) -> Path:
    """Return the folder with all programs of the bundle, after building the missing ones."""
    require_linux()
    folder = programs_folder(bundle)
    if not missing(bundle):
        return folder
    progress = progress or PlainProgress()
    private_folder(folder)
    with locked(folder / "lock", waiting=lambda: progress.note("waiting for another build to finish")):
        needed = missing(bundle)  # another build may have built them meanwhile
        if needed:
            _build(bundle, folder, needed, progress)
    return folder


def _build(bundle: Bundle, folder: Path, needed: list[str], progress: Progress) -> None:
    go = find_go(progress)
    environment = go_environment(go)
    for place in (folder, *_go_caches(go, environment)):
        require_space(place, _space(bundle, needed), purpose=f"building {bundle.title}")
    manifest = Manifest(folder)
    programs = {program.name: program for program in bundle.programs}
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


def _space(bundle: Bundle, needed: list[str]) -> int:
    if bundle is PROMETHEUS:
        return _PROMETHEUS_SPACE
    return _FIRST_BUILD_SPACE if needed == bundle.files else _REBUILD_SPACE


def _compile(program: _Program, target: Path, go: Path, environment: dict[str, str], *, log: Path) -> None:
    command = [
        str(go),
        "build",
        "-ldflags",
        program.flags,
        *(("-tags", program.tags) if program.tags else ()),
    ]
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
