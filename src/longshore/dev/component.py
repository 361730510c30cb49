"""One process of a control plane, with its own log. It ends with its owner at the latest.

The kernel sends SIGKILL when the *thread* that started a process ends. So all of them are started from one
thread that lives as long as the owner, and a control plane may be started from any thread.
"""

import contextlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from longshore.errors import UserError

_LAUNCH = Path(__file__).with_name("launch.py")
_TROUBLE = re.compile(r"^[EF]\d{4} |\berror\b|\bfatal\b|\bfailed\b|^panic:", re.IGNORECASE)

_POLL_SECONDS = 0.05
_READY_SECONDS = 60

_starter = ThreadPoolExecutor(max_workers=1, thread_name_prefix="longshore-dev-starter")


class Component:
    """A program with its arguments, and the process that runs it."""

    def __init__(
        self,
        name: str,
        program: Path,
        arguments: list[str],
        *,
        folder: Path,
        ready: Callable[[], bool] | None = None,
    ) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        self._command = [str(program), *arguments]
        self._folder = folder
        self._ready = ready
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the process, with the cluster's folder as its working directory."""
        with self.log.open("ab") as log:
            self._process = _starter.submit(
                subprocess.Popen,
                _bound(self._command),
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C in the owner's terminal must reach only the owner
            ).result()

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    @property
    def exit_code(self) -> int | None:
        """The exit code of the process, negative if a signal ended it; None while it runs."""
        return self._process.poll() if self._process else None

    def kill(self) -> None:
        """End the process immediately, as a crash would, and wait until it is gone."""
        if self._process:
            self._process.kill()
            self._process.wait()

    def restart(self) -> None:
        """Start the program again with the same data and port, and wait until it is ready."""
        self.kill()
        self.start()
        self.wait_ready()

    def wait_ready(self) -> None:
        """Wait until the process is ready, if that can be checked. Raises if it ends instead."""
        deadline = time.monotonic() + _READY_SECONDS
        while self._ready and not self._ready():
            self.require_running()
            if time.monotonic() > deadline:
                raise UserError(
                    f"{self.name} was not ready within {_READY_SECONDS} s: {last_trouble(self.log)}; "
                    f"log: {self.log}"
                )
            time.sleep(_POLL_SECONDS)

    def require_running(self) -> None:
        """Raise an error with the reason from its log if the process has ended."""
        if (code := self.exit_code) is not None:
            raise UserError(
                f"{self.name} ended (exit code {code}): {last_trouble(self.log)}; log: {self.log}"
            )


def last_trouble(log: Path) -> str:
    """Return the line of the log that most likely says why the process ended."""
    lines: list[str] = []
    with contextlib.suppress(OSError):
        lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    if not lines:
        return "its log is empty"
    return next((line for line in reversed(lines) if _TROUBLE.search(line)), lines[-1])


def run_bound(
    command: list[str], *, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a program until it ends, or until this process does.

    Its output stays in memory, because a full disk may be the reason for which it fails.
    """
    return subprocess.run(
        _bound(command),
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def _bound(command: list[str]) -> list[str]:
    return [sys.executable, "-I", "-S", str(_LAUNCH), str(os.getpid()), *command]
