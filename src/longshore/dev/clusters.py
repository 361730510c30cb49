"""Named clusters, each owned by its own supervisor, which outlives the command that started it.

The supervisor keeps a record in the cluster's folder. Whether it runs is looked up in /proc, so a supervisor
that was killed is recognized as dead without any cleanup. The next `up` or `down` of that name removes what
it left.
"""

import contextlib
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Literal

import msgspec

from longshore.api.names import is_dns_label
from longshore.dev.build import build
from longshore.dev.cache import cache_folder, locked, private_folder, remove_folder, require_linux
from longshore.dev.component import last_trouble
from longshore.dev.owner import Owner
from longshore.dev.progress import Progress
from longshore.errors import UserError

DEFAULT_NAME = "dev"

_END_SECONDS = 10

State = Literal["running", "degraded", "starting", "dead"]


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a cluster; the supervisor gets them as its argument."""

    name: str
    nodes: int
    scheduler: bool
    kwok: bool
    controller_manager: bool


class ClusterRecord(msgspec.Struct, kw_only=True):
    """What the supervisor records about its cluster."""

    options: Options
    supervisor: Owner
    created: float
    programs: str
    ready: bool = False
    server: str = ""
    components: dict[str, Owner] = {}
    ended: list[str] = []

    def write(self) -> None:
        path = _record_file(self.options.name)
        partial = path.with_suffix(".partial")
        partial.write_bytes(msgspec.json.encode(self))
        partial.rename(path)


class LocalCluster:
    """A named cluster as it is now."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.folder = folder_of(name)
        self.record: ClusterRecord | None = None
        # There is no record if the supervisor was killed before it could write one.
        with contextlib.suppress(OSError, msgspec.DecodeError):
            self.record = msgspec.json.decode(_record_file(name).read_bytes(), type=ClusterRecord)

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "kubeconfig"

    @property
    def state(self) -> State:
        if self.record is None or not self.record.supervisor.alive:
            return "dead"
        if not self.record.ready:
            return "starting"
        return "degraded" if self.record.ended else "running"


def clusters() -> list[LocalCluster]:
    """Return all named clusters, including dead ones."""
    root = cache_folder() / "clusters"
    folders = sorted(path for path in root.iterdir() if path.is_dir()) if root.is_dir() else []
    return [LocalCluster(path.name) for path in folders]


def find(name: str) -> LocalCluster:
    """Return the cluster with this name, dead or alive."""
    _require_valid(name)
    if not folder_of(name).is_dir():
        known = ", ".join(cluster.name for cluster in clusters()) or "none"
        raise UserError(
            f"no cluster named {name} (existing: {known}): start it with `longshore dev up --name {name}`"
        )
    return LocalCluster(name)


def running(name: str) -> LocalCluster:
    """Return the cluster with this name. Raises unless it is running."""
    cluster = find(name)
    if cluster.state in ("dead", "starting"):
        raise UserError(f"cluster {name} is {cluster.state}: start it with `longshore dev up --name {name}`")
    return cluster


def up(options: Options, progress: Progress) -> LocalCluster:
    """Start a cluster, and return when it is ready. Its supervisor keeps running."""
    require_linux()
    name = options.name
    _require_valid(name)
    programs = build(progress)
    with _reserved(name, progress):
        if (state := LocalCluster(name).state) != "dead":
            raise UserError(
                f"cluster {name} is already {state}: use it with `longshore dev kubectl --name {name}`, "
                f"end it with `longshore dev down --name {name}`, or choose another --name"
            )
        remove_folder(folder_of(name))
        private_folder(folder_of(name))
        _start_supervisor(options, programs)
    return LocalCluster(name)


def down(name: str, progress: Progress) -> LocalCluster:
    """End a cluster and all of its processes, and remove its folder. Return the cluster as it was before."""
    find(name)
    with _reserved(name, progress):
        cluster = find(name)
        if cluster.record:
            _end(cluster.record.supervisor, signal.SIGTERM)
            for component in cluster.record.components.values():
                _end(component, signal.SIGKILL)  # only if the supervisor could not do it
        remove_folder(cluster.folder)
    return cluster


def folder_of(name: str) -> Path:
    return cache_folder() / "clusters" / name


def _record_file(name: str) -> Path:
    return folder_of(name) / "cluster.json"


def _require_valid(name: str) -> None:
    if not is_dns_label(name):
        raise UserError(
            f"{name!r} is not a valid cluster name: use up to 63 lowercase letters, digits, and dashes, "
            "such as my-cluster"
        )


def _reserved(name: str, progress: Progress) -> contextlib.AbstractContextManager[None]:
    root = private_folder(cache_folder() / "clusters")
    return locked(
        root / f".{name}.lock",
        waiting=lambda: progress.note(f"waiting for another command that starts or ends cluster {name}"),
    )


def _start_supervisor(options: Options, programs: Path) -> None:
    log = folder_of(options.name) / "supervisor.log"
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "longshore.dev.supervisor",
                msgspec.json.encode(options).decode(),
                str(programs),
            ],
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,
        )
    try:
        # One line when it is ready or has failed; end of file if it ended without a message.
        answer = process.stdout.readline() if process.stdout else b""
    except BaseException:
        process.terminate()
        process.wait()
        raise
    if not answer:
        process.wait()
        raise UserError(f"the supervisor ended while starting: {last_trouble(log)}; log: {log}")
    if error := msgspec.json.decode(answer)["error"]:
        process.wait()
        raise UserError(error)


def _end(process: Owner, first: signal.Signals) -> None:
    """End the process with this signal, or with SIGKILL if that takes too long, and wait for its end."""
    try:
        handle = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return
    try:
        if not process.alive:  # its number belongs to another process now
            return
        signal.pidfd_send_signal(handle, first)
        if not select.select([handle], [], [], _END_SECONDS)[0]:
            signal.pidfd_send_signal(handle, signal.SIGKILL)
            select.select([handle], [], [], _END_SECONDS)
    except ProcessLookupError:
        return
    finally:
        os.close(handle)
