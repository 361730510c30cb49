"""A container without a container engine: it has a separate read-only root, and runs as uid 65532.

The root contains the system's programs, the Python that runs the tests, an environment with the wheel at its
place in the image, and the files of the volumes. Like container engines, it needs root or user namespaces.
"""

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

UID = 65532
# The place of the wheel in the image, and its PATH. See the Dockerfile.
ENVIRONMENT = "/opt/longshore"
SEARCH_PATH = f"{ENVIRONMENT}/bin:/usr/local/bin:/usr/bin:/bin"

# These directories are links into /usr on some systems.
_BUILD = """
set -eu
mount -t tmpfs none "$ROOT"
for folder in bin sbin lib lib64; do
  if [ -L /$folder ]; then cp -P /$folder "$ROOT/$folder"; fi
done
bind() {
  mkdir -p "$ROOT$2"
  mount --rbind "$1" "$ROOT$2"
  mount -o remount,ro,bind "$ROOT$2" 2> /dev/null || true
}
for folder in /usr /bin /sbin /lib /lib64; do
  if [ -d $folder ] && [ ! -L $folder ]; then bind $folder $folder; fi
done
mkdir "$ROOT/dev" "$ROOT/proc"
mount --rbind /dev "$ROOT/dev"
mount --rbind /proc "$ROOT/proc"
bind "$PYTHON" "$PYTHON"
bind "$WHEEL" "$ENVIRONMENT"
cp -r "$VOLUMES/." "$ROOT/"
chmod -R a+rX "$ROOT/etc" "$ROOT/var"
mount -o remount,ro,bind "$ROOT"
"""
_AS_ROOT = 'exec chroot --userspec=$ID:$ID "$ROOT" env -i $VARIABLES "$@"'
# A user namespace cannot be created after a change of the root.
_AS_ANYONE = 'exec unshare --user --map-user=$ID --map-group=$ID --root="$ROOT" env -i $VARIABLES "$@"'


@contextmanager
def container(
    command: Sequence[str],
    *,
    wheel: Path,
    files: Mapping[str, str],
    variables: Mapping[str, str],
    scratch: Path,
) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """Start the command, and yield it with its log. `wheel` is the environment with the wheel."""
    root, volumes, log = scratch / "root", scratch / "volumes", scratch / "log"
    for folder in (root, volumes / "etc", volumes / "var"):
        folder.mkdir(parents=True)
    for path, text in files.items():
        file = volumes / path.removeprefix("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    as_root = os.geteuid() == 0
    given = {"PATH": SEARCH_PATH, "HOME": "/", "PYTHONDONTWRITEBYTECODE": "1", **variables}
    environment = {
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "ROOT": str(root),
        "PYTHON": sys.base_prefix,
        "WHEEL": str(wheel),
        "VOLUMES": str(volumes),
        "ENVIRONMENT": ENVIRONMENT,
        "ID": str(UID),
    }
    script = _BUILD + (_AS_ROOT if as_root else _AS_ANYONE).replace(
        "$VARIABLES", shlex.join(f"{name}={value}" for name, value in given.items())
    )
    apart = ["unshare", "--mount"] if as_root else ["unshare", "--user", "--map-root-user", "--mount"]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*apart, "sh", "-c", script, "sh", *command],
            env=environment,
            cwd="/",
            stdout=output,
            stderr=output,
        )
    try:
        yield process, log
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
