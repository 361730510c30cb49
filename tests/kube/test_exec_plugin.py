"""Exec plugins as real commands: their input, how long their output is cached, and how they fail."""

import asyncio
import base64
import json
import os
import pty
import ssl
import subprocess
import sys
import textwrap
import threading
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.kube import pki
from tests.kube.clock import Clock
from tests.waiting import eventually_async

from longshore.errors import UserError
from longshore.kube import exec_plugin
from longshore.kube.config import Connection, load
from longshore.kube.exec_plugin import RUN_PAUSE, ExecPlugin
from longshore.kube.kubeconfig import Cluster, Exec, NamedEntry, User

V1 = "client.authentication.k8s.io/v1"
V1BETA1 = "client.authentication.k8s.io/v1beta1"


@pytest.fixture
def clock() -> Clock:
    return Clock()


class Plugin:
    """A real command that logs each of its runs and prints what the test sets."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.command = folder / "plugin"
        self.log = folder / "runs"
        self.answer = folder / "answer"
        self.says()

    def says(self, text: str = "", *, version: str = V1, then: str = "", **status: object) -> None:
        """Let the command print this status or this text, and then run `then`."""
        document = {"apiVersion": version, "kind": "ExecCredential", "status": status}
        self.answer.write_text(text or json.dumps(document))
        script = f"""\
            #!/bin/sh
            printf '%s\\n' "$KUBERNETES_EXEC_INFO" >> {self.log}
            cat {self.answer}
            {then}
            """
        self.command.write_text(textwrap.dedent(script))
        self.command.chmod(0o755)

    @property
    def requests(self) -> list[dict[str, Any]]:
        """The input of each run."""
        return [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []

    @property
    def runs(self) -> int:
        return len(self.requests)

    def user(self, **options: object) -> dict[str, Any]:
        return {
            "exec": {"command": "./plugin", "apiVersion": V1, "interactiveMode": "Never"} | options,
        }

    def connection(self, *, cluster: dict[str, object] | None = None, **options: Any) -> Connection:
        """The connection of a kubeconfig in the same folder as the command."""
        file = self.folder / "config.yaml"
        content = {
            "clusters": [
                {"name": "harbour", "cluster": {"server": "https://localhost:6443"} | (cluster or {})}
            ],
            "users": [{"name": "docker", "user": self.user(**options)}],
            "contexts": [{"name": "quay", "context": {"cluster": "harbour", "user": "docker"}}],
            "current-context": "quay",
        }
        file.write_text(yaml.safe_dump(content))
        return load(file)

    def credentials(self, clock: Clock) -> ExecPlugin:
        """The credentials of the command, with the clock of the test."""
        described = Exec(command="./plugin", api_version=V1, interactive_mode="Never")
        return ExecPlugin(
            NamedEntry("user", "docker", self.folder / "config.yaml", User(exec=described)),
            described,
            cluster=Cluster(),
            authority=None,
            context=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
            clock=clock,
        )

    async def problem(self, **options: Any) -> str:
        """The one-line error of asking for the credentials."""
        with pytest.raises(UserError) as raised:
            await self.connection(**options).credentials.authorization()
        text = str(raised.value)
        assert "\n" not in text
        start = f'{self.folder / "config.yaml"}: user "docker": '
        assert text.startswith(start)
        return text.removeprefix(start)


@pytest.fixture
def plugin(tmp_path: Path) -> Plugin:
    return Plugin(tmp_path)


class TestExecPlugin:
    async def test_a_token_without_expiration_is_cached(self, plugin: Plugin, clock: Clock) -> None:
        plugin.says(token="one")
        credentials = plugin.credentials(clock)
        assert await credentials.authorization() == "Bearer one"
        clock.now += 1_000_000
        assert await credentials.authorization() == "Bearer one"
        assert plugin.runs == 1

    @pytest.mark.parametrize(
        ("life", "refreshed_at"), [(3600.0, 3570.0), (60.0, 54.0), (0.1, 1.0), (-5.0, 1.0)]
    )
    async def test_a_token_is_fetched_again_shortly_before_it_expires(
        self, plugin: Plugin, clock: Clock, life: float, refreshed_at: float
    ) -> None:
        plugin.says(token="one", expirationTimestamp=clock.stamp(life))
        credentials = plugin.credentials(clock)
        await credentials.authorization()
        plugin.says(token="two")
        clock.now += refreshed_at - 0.1
        assert await credentials.authorization() == "Bearer one"
        clock.now += 0.1
        assert await credentials.authorization() == "Bearer two"

    async def test_a_401_causes_one_run(self, plugin: Plugin, clock: Clock) -> None:
        plugin.says(token="one")
        credentials = plugin.credentials(clock)
        await credentials.authorization()
        plugin.says(token="two")
        clock.now += RUN_PAUSE
        credentials.invalidate()
        assert await credentials.authorization() == "Bearer two"
        credentials.invalidate()  # for a request that still used the first token
        assert await credentials.authorization() == "Bearer two"
        assert plugin.runs == 2

    async def test_concurrent_requests_share_one_run(self, plugin: Plugin) -> None:
        plugin.says(token="one", then="sleep 0.1")
        credentials = plugin.connection().credentials
        headers = await asyncio.gather(*(credentials.authorization() for _ in range(50)))
        assert headers == ["Bearer one"] * 50
        assert plugin.runs == 1

    def test_event_loops_of_two_threads_share_one_run(self, plugin: Plugin) -> None:
        plugin.says(token="one", then="sleep 0.1")
        credentials = plugin.connection().credentials
        headers: list[str | None] = []
        threads = [
            threading.Thread(target=lambda: headers.append(asyncio.run(credentials.authorization())))
            for _ in range(2)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert headers == ["Bearer one"] * 2
        assert plugin.runs == 1

    async def test_a_cancelled_request_does_not_cancel_the_run_of_others(self, plugin: Plugin) -> None:
        plugin.says(token="one", then="sleep 0.1")
        credentials = plugin.connection().credentials
        cancelled, other = (asyncio.create_task(credentials.authorization()) for _ in range(2))
        await asyncio.sleep(0)
        cancelled.cancel()
        assert await other == "Bearer one"
        assert plugin.runs == 1

    async def test_the_event_loop_continues_while_the_command_runs(self, plugin: Plugin) -> None:
        plugin.says(token="one", then=f"while [ ! -e {plugin.folder}/go ]; do sleep 0.01; done")
        asked = asyncio.create_task(_authorization(plugin.connection()))
        await asyncio.sleep(0)
        (plugin.folder / "go").touch()  # the command ends only because this line is reached
        assert await asked == "Bearer one"

    async def test_the_old_token_is_used_until_it_expires_when_the_command_fails(
        self, plugin: Plugin, clock: Clock
    ) -> None:
        plugin.says(token="one", expirationTimestamp=clock.stamp(3600))
        credentials = plugin.credentials(clock)
        await credentials.authorization()
        plugin.says(then="exit 1")
        clock.now += 3599
        assert await credentials.authorization() == "Bearer one"
        clock.now += 1
        with pytest.raises(UserError, match="exit code 1"):
            await credentials.authorization()

    async def test_a_failing_command_is_not_run_for_every_request(self, plugin: Plugin, clock: Clock) -> None:
        plugin.says(then="exit 1")
        credentials = plugin.credentials(clock)
        for _ in range(3):
            with pytest.raises(UserError):
                await credentials.authorization()
        assert plugin.runs == 1
        plugin.says(token="well again")
        clock.now += RUN_PAUSE
        assert await credentials.authorization() == "Bearer well again"

    async def test_arguments_and_environment_reach_the_command(self, plugin: Plugin) -> None:
        plugin.says(then=f'printf "%s|%s|%s" "$1" "$2" "$COLOUR" > {plugin.folder}/seen')
        with pytest.raises(UserError):
            await _authorization(
                plugin.connection(args=["a b", "c"], env=[{"name": "COLOUR", "value": "red"}])
            )
        assert (plugin.folder / "seen").read_text() == "a b|c|red"

    async def test_the_cluster_is_passed_only_on_request(self, plugin: Plugin) -> None:
        plugin.says(token="one")
        cluster: dict[str, object] = {
            "certificate-authority-data": base64.b64encode(pki.authority().certificate).decode(),
            "tls-server-name": "kubernetes",
            "extensions": [{"name": "client.authentication.k8s.io/exec", "extension": {"audience": "us"}}],
        }
        await _authorization(plugin.connection(cluster=cluster))
        await _authorization(plugin.connection(cluster=cluster, provideClusterInfo=True))
        brief, full = plugin.requests
        assert brief == {"apiVersion": V1, "kind": "ExecCredential", "spec": {"interactive": False}}
        assert full["spec"]["cluster"] == {
            "server": "https://localhost:6443",
            "tls-server-name": "kubernetes",
            "certificate-authority-data": cluster["certificate-authority-data"],
            "config": {"audience": "us"},
        }

    async def test_the_older_version_needs_no_interactive_mode(self, plugin: Plugin) -> None:
        plugin.says(version=V1BETA1, token="one")
        connection = plugin.connection(apiVersion=V1BETA1, interactiveMode="")
        assert await connection.credentials.authorization() == "Bearer one"
        assert plugin.requests[0]["apiVersion"] == V1BETA1

    async def test_a_command_without_a_slash_is_looked_up(
        self, plugin: Plugin, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        plugin.says(token="one")
        monkeypatch.setenv("PATH", str(plugin.folder), prepend=os.pathsep)
        assert await _authorization(plugin.connection(command="plugin")) == "Bearer one"

    async def test_a_token_in_the_entry_is_preferred_to_the_command(self, plugin: Plugin) -> None:
        plugin.says(token="one")
        plugin.connection()
        file = plugin.folder / "config.yaml"
        content = yaml.safe_load(file.read_text())
        content["users"][0]["user"]["token"] = "fixed"
        file.write_text(yaml.safe_dump(content))
        assert await load(file).credentials.authorization() == "Bearer fixed"
        assert plugin.runs == 0

    async def test_a_certificate_is_presented_on_connections_opened_afterwards(self, plugin: Plugin) -> None:
        cluster: dict[str, object] = {
            "certificate-authority-data": base64.b64encode(pki.authority().certificate).decode()
        }
        connection = plugin.connection(cluster=cluster)
        certificate, key = pki.client().certificate.decode(), pki.client().key.decode()
        plugin.says(clientCertificateData=certificate, clientKeyData=key)
        assert _shown(connection, plugin.folder) is None
        assert await connection.credentials.authorization() is None
        assert _shown(connection, plugin.folder) == "a client"
        await connection.credentials.authorization()
        assert plugin.runs == 1


class TestExecPluginProblems:
    async def test_a_missing_command_is_reported_with_its_install_hint(self, plugin: Plugin) -> None:
        text = await plugin.problem(command="./nowhere", installHint="run `brew install\nnowhere`")
        assert text == 'the exec plugin "./nowhere" was not found: run `brew install nowhere`'

    async def test_a_missing_command_without_a_hint_is_reported(self, plugin: Plugin) -> None:
        text = await plugin.problem(command="no-such-command-anywhere")
        assert text.endswith("was not found: install it, or correct the path")

    async def test_a_command_that_is_not_a_program_is_reported(self, plugin: Plugin) -> None:
        plugin.command.write_bytes(b"\x00\x01\x02")
        assert "cannot be started: " in await plugin.problem()

    async def test_the_first_line_of_its_error_output_is_reported(
        self, plugin: Plugin, capfd: pytest.CaptureFixture[str]
    ) -> None:
        plugin.says(then="echo 'please log in' >&2; echo 'more' >&2; exit 3")
        assert await plugin.problem() == 'the exec plugin "./plugin" failed with exit code 3: please log in'
        assert capfd.readouterr().err == ""

    async def test_a_command_that_takes_too_long_is_killed_with_its_children(
        self, plugin: Plugin, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(exec_plugin, "RUN_LIMIT", 0.3)
        plugin.says(then=f"sleep 300 & echo $! > {plugin.folder}/child; wait")
        assert "did not end within 0.3 s" in await plugin.problem()
        child = int((plugin.folder / "child").read_text())
        await eventually_async(lambda: _runs(child), lambda runs: not runs)

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("token: one", "printed something other than an ExecCredential: "),
            ("{}", "printed  , not ExecCredential client.authentication.k8s.io/v1"),
            (
                json.dumps({"apiVersion": V1BETA1, "kind": "ExecCredential", "status": {"token": "one"}}),
                f"printed ExecCredential {V1BETA1}, not ExecCredential {V1}",
            ),
            (
                json.dumps({"apiVersion": V1, "kind": "ExecCredential"}),
                "neither a token nor a client certificate",
            ),
            (
                json.dumps({"apiVersion": V1, "kind": "ExecCredential", "status": {"clientKeyData": "k"}}),
                "printed a client certificate without its key or a key without its certificate",
            ),
            (
                json.dumps(
                    {
                        "apiVersion": V1,
                        "kind": "ExecCredential",
                        "status": {"clientKeyData": "k", "clientCertificateData": "c"},
                    }
                ),
                "printed a client certificate that contains no certificate",
            ),
        ],
    )
    async def test_an_unusable_output_is_reported(self, plugin: Plugin, text: str, expected: str) -> None:
        plugin.says(text)
        assert expected in await plugin.problem()

    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            ({"command": ""}, "exec: command is missing"),
            ({"apiVersion": "client.authentication.k8s.io/v1alpha1"}, "is not supported: use one of"),
            (
                {"interactiveMode": ""},
                'unknown interactiveMode "": use one of Never, IfAvailable, Always',
            ),
            ({"interactiveMode": "Sometimes"}, 'unknown interactiveMode "Sometimes"'),
        ],
    )
    async def test_an_unusable_entry_is_reported(
        self, plugin: Plugin, options: dict[str, object], expected: str
    ) -> None:
        assert expected in await plugin.problem(**options)

    async def test_an_interactive_plugin_needs_a_terminal(self, plugin: Plugin) -> None:
        assert "run this on a terminal" in await plugin.problem(interactiveMode="Always")
        assert plugin.runs == 0

    def test_an_interactive_plugin_uses_the_terminal(self, plugin: Plugin) -> None:
        plugin.says(token="one", then=f"read word; echo $word > {plugin.folder}/word")
        plugin.connection(interactiveMode="Always")
        script = (
            "import asyncio; from longshore.kube.config import load; "
            f"print(asyncio.run(load({str(plugin.folder / 'config.yaml')!r}).credentials.authorization()))"
        )
        ours, terminal = pty.openpty()
        try:
            os.write(ours, b"open sesame\n")
            done = subprocess.run(
                [sys.executable, "-c", script],
                stdin=terminal,
                capture_output=True,
                text=True,
                check=True,
                timeout=30,
            )
        finally:
            os.close(ours)
            os.close(terminal)
        assert done.stdout == "Bearer one\n"
        assert (plugin.folder / "word").read_text() == "open sesame\n"
        assert plugin.requests[0]["spec"]["interactive"] is True


def _authorization(connection: Connection) -> Coroutine[Any, Any, str | None]:
    return connection.credentials.authorization()


def _shown(connection: Connection, folder: Path) -> str | None:
    """The common name that a server sees if a connection is opened now."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_verify_locations(cadata=pki.authority().certificate.decode())
    context.verify_mode = ssl.CERT_OPTIONAL
    chain = folder / "server.pem"
    chain.write_bytes(pki.server().key + pki.server().certificate)
    context.load_cert_chain(chain)
    assert connection.ssl is not None
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = connection.ssl.wrap_bio(to_client, to_server, server_hostname="localhost")
    server = context.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(4):  # hello, hello and certificate, certificate, finished
        for side in (client, server):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    seen = server.getpeercert()
    if not seen:
        return None
    subject: Any = seen["subject"]
    return str(subject[0][0][1])


def _runs(process: int) -> bool:
    """Whether the process exists and is not a zombie."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
