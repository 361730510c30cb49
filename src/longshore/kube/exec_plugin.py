"""Credentials from a command: the exec plugins of client.authentication.k8s.io.

The command runs in a thread, so it blocks no event loop, and requests that need it at the same time share one
run, even if they are on different loops. Credentials are cached until shortly before they expire. If the
command fails then, the previous ones are used until their end.
"""

import asyncio
import base64
import contextlib
import os
import shutil
import signal
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import datetime
from typing import NoReturn

import msgspec

from longshore.errors import UserError
from longshore.kube import tls
from longshore.kube.credentials import bearer
from longshore.kube.kubeconfig import EXEC_EXTENSION, Cluster, Exec, NamedEntry, User

VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
MODES = ("Never", "IfAvailable", "Always")
# A plugin may have to reach an identity provider. An interactive one has no time limit.
RUN_LIMIT = 60.0
# The shortest time between two runs, even if credentials expire quickly or the server answers 401 often. If
# many requests are in progress when a token expires, only the first 401 causes a run.
RUN_PAUSE = 1.0
# Credentials are fetched again this long before they expire, or after nine tenths of a lifetime under 5
# minutes.
_EARLY = 30.0
_EARLY_SHARE = 0.1


class _CredentialStatus(msgspec.Struct, frozen=True, rename="camel"):
    expiration_timestamp: datetime | None = None
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""


class _ExecCredential(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    status: _CredentialStatus | None = None


@dataclass(frozen=True, slots=True)
class _Credential:
    header: str | None
    certificate: bytes
    key: bytes
    expires: float
    refresh: float


class ExecPlugin:
    """The command of one user entry, for one cluster. Its certificates are loaded into the given context."""

    def __init__(
        self,
        user: NamedEntry[User],
        plugin: Exec,
        *,
        cluster: Cluster,
        authority: bytes | None,
        context: ssl.SSLContext,
        clock: Callable[[], float] = time.time,  # the plugin gives expiration in wall time
    ) -> None:
        self._user = user
        self._plugin = plugin
        self._mode = _checked_mode(user, plugin)
        self._info = _cluster_info(cluster, authority) if plugin.provide_cluster_info else None
        self._context = context
        self._clock = clock
        self._lock = threading.Lock()
        self._run: Future[_Credential] | None = None
        self._run_ended = 0.0
        self._current: _Credential | None = None
        self._shown: _Credential | None = None
        self._refresh_at = 0.0

    async def authorization(self) -> str | None:
        current = self._current
        now = self._clock()
        if current is None or now >= self._refresh_at:
            try:
                # Shielded, because a request that is cancelled must not cancel the run for the others.
                current = await asyncio.shield(asyncio.wrap_future(self._shared_run()))
            except UserError:
                if current is None or now >= current.expires:
                    raise
        if current.certificate and current is not self._shown:
            # On the loop that opens the connections, because a context must not change during a handshake.
            self._show(current)
        return current.header

    def invalidate(self) -> None:
        if self._has_paused():
            self._refresh_at = 0.0

    def _show(self, credential: _Credential) -> None:
        try:
            tls.identify(self._context, certificate=credential.certificate, key=credential.key)
        except tls.Unusable as problem:
            raise self._error(f"printed a client certificate that {problem}") from problem
        self._shown = credential

    def _shared_run(self) -> Future[_Credential]:
        """Return the current run, the last one if it has just ended, or a new one."""
        with self._lock:
            if self._run is None or (self._run.done() and self._has_paused()):
                self._run = Future()
                self._run.set_running_or_notify_cancel()
                threading.Thread(target=self._fetch, args=(self._run,), daemon=True).start()
            return self._run

    def _has_paused(self) -> bool:
        return abs(self._clock() - self._run_ended) >= RUN_PAUSE  # wall time may be set back

    def _fetch(self, run: Future[_Credential]) -> None:
        try:
            credential = self._credential(self._output())
        except BaseException as error:  # whatever it is, it must reach everything that waits for the run
            self._run_ended = self._clock()
            run.set_exception(error)
        else:
            self._current, self._refresh_at = credential, credential.refresh
            self._run_ended = self._clock()
            run.set_result(credential)

    def _output(self) -> bytes:
        """Run the command, and return what it prints."""
        written = self._plugin.command
        command = shutil.which(str(self._user.path(written)) if os.sep in written else written)
        if command is None:
            hint = " ".join(self._plugin.install_hint.split()) or "install it, or correct the path"
            raise self._error(f"was not found: {hint}")
        interactive = self._mode != "Never" and _has_terminal()
        if self._mode == "Always" and not interactive:
            raise self._error("is interactive (interactiveMode Always): run this on a terminal")
        spec: dict[str, object] = {"interactive": interactive}
        if self._info is not None:
            spec["cluster"] = self._info
        request = {"apiVersion": self._plugin.api_version, "kind": "ExecCredential", "spec": spec}
        environment = os.environ | {variable.name: variable.value for variable in self._plugin.env}
        environment["KUBERNETES_EXEC_INFO"] = msgspec.json.encode(request).decode()
        try:
            process = subprocess.Popen(
                [command, *self._plugin.args],
                env=environment,
                stdin=None if interactive else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                # The user must see the prompt.
                stderr=None if interactive else subprocess.PIPE,
                # So that its children can be killed with it, unless they need the terminal.
                start_new_session=not interactive,
            )
        except (OSError, ValueError) as error:
            raise self._error(f"cannot be started: {error}") from error
        with process:
            try:
                output, complaint = process.communicate(timeout=None if interactive else RUN_LIMIT)
            except subprocess.TimeoutExpired as error:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                raise self._error(f"did not end within {RUN_LIMIT:g} s: run it by hand") from error
        if process.returncode != 0:
            reason = (complaint or b"").decode(errors="replace").strip().partition("\n")[0]
            raise self._error(f"failed with exit code {process.returncode}: {reason or 'it gave no reason'}")
        return output

    def _credential(self, output: bytes) -> _Credential:
        try:
            answer = msgspec.json.decode(output, type=_ExecCredential)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise self._error(f"printed something other than an ExecCredential: {error}") from error
        expected = self._plugin.api_version
        if answer.kind != "ExecCredential" or answer.api_version != expected:
            raise self._error(f"printed {answer.kind} {answer.api_version}, not ExecCredential {expected}")
        status = answer.status or _CredentialStatus()
        if not (status.token or status.client_certificate_data or status.client_key_data):
            raise self._error("printed neither a token nor a client certificate")
        if bool(status.client_certificate_data) != bool(status.client_key_data):
            raise self._error("printed a client certificate without its key or a key without its certificate")
        now = self._clock()
        expires = refresh = float("inf")
        if status.expiration_timestamp is not None:
            expires = status.expiration_timestamp.timestamp()
            refresh = max(expires - min(_EARLY, _EARLY_SHARE * (expires - now)), now + RUN_PAUSE)
        return _Credential(
            header=bearer(status.token) if status.token else None,
            certificate=status.client_certificate_data.encode(),
            key=status.client_key_data.encode(),
            expires=expires,
            refresh=refresh,
        )

    def _error(self, problem: str) -> UserError:
        return self._user.error(f'the exec plugin "{self._plugin.command}" {problem}')


def _checked_mode(user: NamedEntry[User], plugin: Exec) -> str:
    def refuse(problem: str) -> NoReturn:
        raise user.error(f"exec: {problem}")

    if not plugin.command:
        refuse("command is missing")
    if plugin.api_version not in VERSIONS:
        refuse(f'apiVersion "{plugin.api_version}" is not supported: use one of {", ".join(VERSIONS)}')
    # The field is required in v1; its default in v1beta1 is IfAvailable.
    mode = plugin.interactive_mode or ("IfAvailable" if plugin.api_version == VERSIONS[1] else "")
    if mode not in MODES:
        refuse(f'unknown interactiveMode "{mode}": use one of {", ".join(MODES)}')
    return mode


def _cluster_info(cluster: Cluster, authority: bytes | None) -> dict[str, object]:
    """Return the cluster as it is passed to the plugin, with the content of the certificate authority."""
    info: dict[str, object] = {
        "server": cluster.server,
        "tls-server-name": cluster.tls_server_name,
        "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify,
        "certificate-authority-data": base64.b64encode(authority or b"").decode(),
        "proxy-url": cluster.proxy_url,
        "disable-compression": cluster.disable_compression,
    }
    passed: dict[str, object] = {name: value for name, value in info.items() if value}
    # Always present, because a plugin may require this key.
    passed["config"] = next((e.extension for e in cluster.extensions if e.name == EXEC_EXTENSION), None)
    return passed


def _has_terminal() -> bool:
    return sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty()
