"""Finding the API server as kubectl does; telling in one line what is wrong with files and certificates."""

import asyncio
import base64
import contextlib
import os
import ssl
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509
from hypothesis import given
from hypothesis import strategies as st
from tests.kube import pki

from longshore.errors import UserError
from longshore.kube import config, tls
from longshore.kube.config import Connection, in_cluster, load

DAY = timedelta(days=1)


def b64(content: bytes) -> str:
    return base64.b64encode(content).decode()


def document(
    *,
    cluster: Mapping[str, object] | None = None,
    user: Mapping[str, object] | None = None,
    context: Mapping[str, object] | None = None,
) -> dict[str, Any]:
    """A kubeconfig with one of each; what is given is merged into them."""
    return {
        "clusters": [
            {"name": "harbour", "cluster": {"server": "https://localhost:6443"} | dict(cluster or {})}
        ],
        "users": [{"name": "docker", "user": dict(user or {})}],
        "contexts": [
            {"name": "quay", "context": {"cluster": "harbour", "user": "docker"} | dict(context or {})}
        ],
        "current-context": "quay",
    }


def write(path: Path, content: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(content))
    return path


@pytest.fixture(autouse=True)
def nothing_around(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a kubeconfig nor a service account of the machine that runs the test."""
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(config, "SERVICE_ACCOUNT", tmp_path / "serviceaccount")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config.yaml"


def authorization(connection: Connection) -> str | None:
    return asyncio.run(connection.credentials.authorization())


def problem(file: Path | None, *, context: str | None = None) -> str:
    """The one line that loading this file ends with."""
    with pytest.raises(UserError) as raised:
        load(file, context=context)
    text = str(raised.value)
    assert "\n" not in text
    return text


class TestFinding:
    def test_explicit_file_wins_over_the_environment(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("KUBECONFIG", str(write(tmp_path / "other", document(user={"token": "other"}))))
        assert (
            authorization(load(write(tmp_path / "mine", document(user={"token": "mine"})))) == "Bearer mine"
        )

    def test_home_is_used_when_nothing_is_named(self, tmp_path: Path) -> None:
        write(tmp_path / "home/.kube/config", document(user={"token": "home"}))
        assert authorization(load()) == "Bearer home"

    def test_environment_wins_over_home(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        write(tmp_path / "home/.kube/config", document(user={"token": "home"}))
        monkeypatch.setenv("KUBECONFIG", str(write(tmp_path / "named", document(user={"token": "named"}))))
        assert authorization(load()) == "Bearer named"

    def test_of_several_files_the_first_to_define_an_entry_wins_whole(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        first = {"users": [{"name": "docker", "user": {"token": "first"}}], "clusters": None}
        second = document(user={"username": "u", "password": "p"}, context={"namespace": "second"})
        third = document(context={"namespace": "third"}) | {"current-context": "elsewhere"}
        paths = [
            write(tmp_path / name, content)
            for name, content in zip("abc", (first, second, third), strict=True)
        ]
        missing = tmp_path / "missing"
        monkeypatch.setenv("KUBECONFIG", os.pathsep.join(map(str, [missing, "", *paths, paths[0]])))
        connection = load()
        assert authorization(connection) == "Bearer first"
        assert connection.namespace == "second"

    def test_named_context_wins_over_the_current_one(self, file: Path) -> None:
        content = document()
        content["contexts"].append(
            {"name": "pier", "context": {"cluster": "harbour", "user": "docker", "namespace": "p"}}
        )
        assert load(write(file, content), context="pier").namespace == "p"

    def test_relative_paths_start_at_the_folder_of_their_file(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folder = tmp_path / "deep/folder"
        write(
            folder / "config",
            document(cluster={"certificate-authority": "ca.crt"}, user={"tokenFile": "../token"}),
        )
        (folder / "ca.crt").write_bytes(pki.authority().certificate)
        (folder / "../token").write_text("from-file\n")
        monkeypatch.chdir(tmp_path / "deep")
        assert authorization(load("folder/config")) == "Bearer from-file"

    def test_context_without_namespace_means_default(self, file: Path) -> None:
        assert load(write(file, document())).namespace == "default"

    def test_server_keeps_its_prefix_and_loses_its_last_slash(self, file: Path) -> None:
        connection = load(write(file, document(cluster={"server": "https://localhost/k8s/clusters/c-1/"})))
        assert connection.server == "https://localhost/k8s/clusters/c-1"

    def test_server_name_and_proxy_are_handed_on(self, file: Path) -> None:
        cluster = {"tls-server-name": "kubernetes", "proxy-url": "http://u:p@proxy:3128"}
        connection = load(write(file, document(cluster=cluster)))
        assert (connection.server_hostname, connection.proxy_url) == ("kubernetes", "http://u:p@proxy:3128")

    def test_plain_http_has_no_tls_and_shows_no_credentials(self, file: Path) -> None:
        connection = load(
            write(file, document(cluster={"server": "http://localhost:8001"}, user={"token": "t"}))
        )
        assert connection.ssl is None
        assert authorization(connection) is None


class TestInCluster:
    @pytest.fixture
    def pod(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
        folder = tmp_path / "serviceaccount"
        folder.mkdir()
        (folder / "ca.crt").write_bytes(pki.authority().certificate)
        (folder / "token").write_text("one")
        (folder / "namespace").write_text("harbour\n")
        return folder

    def test_is_found_when_there_is_no_file(self, pod: Path) -> None:
        connection = load()
        assert (connection.server, connection.namespace) == ("https://10.0.0.1:443", "harbour")
        assert authorization(connection) == "Bearer one"

    def test_is_found_when_the_named_files_are_missing_or_empty(
        self, pod: Path, file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("KUBECONFIG", f"{file}{os.pathsep}{write(file.with_name('empty'), {})}")
        assert load().server == "https://10.0.0.1:443"

    def test_file_wins_over_the_pod(self, pod: Path, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("KUBECONFIG", str(write(file, document())))
        assert load().server == "https://localhost:6443"

    def test_ipv6_address_is_bracketed(self, pod: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
        assert in_cluster().server == "https://[fd00::1]:443"

    def test_context_cannot_be_had_from_a_pod(self, pod: Path) -> None:
        assert "no kubeconfig found" in problem(None, context="quay")

    def test_missing_authority_is_told(self, pod: Path) -> None:
        (pod / "ca.crt").unlink()
        with pytest.raises(UserError, match=r"ca\.crt: No such file or directory: mount the service account"):
            in_cluster()

    def test_expired_authority_is_told(self, pod: Path) -> None:
        (pod / "ca.crt").write_bytes(pki.issue(authority=True, starts=-2 * DAY, ends=-DAY).certificate)
        with pytest.raises(UserError, match=r"ca\.crt expired on"):
            in_cluster()

    def test_missing_token_is_told(self, pod: Path) -> None:
        (pod / "token").unlink()
        with pytest.raises(UserError, match="cannot read the token file"):
            in_cluster()

    def test_outside_a_pod_is_told(self) -> None:
        with pytest.raises(UserError, match="not in a pod"):
            in_cluster()


class TestWhatIsWrongWithTheFile:
    def test_wrong_path(self, tmp_path: Path) -> None:
        path = tmp_path / "nowhere"
        assert (
            problem(path) == f"cannot read the kubeconfig {path}: No such file or directory: correct the path"
        )

    def test_path_that_cannot_be_read(self, tmp_path: Path) -> None:
        assert "Is a directory" in problem(tmp_path)

    def test_nothing_anywhere(self, tmp_path: Path) -> None:
        looked_for = tmp_path / "home/.kube/config"
        expected = f"no kubeconfig found (looked for {looked_for}): set KUBECONFIG or name a file"
        assert problem(None) == expected

    def test_all_files_of_the_environment_missing(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("KUBECONFIG", f"{tmp_path}/a{os.pathsep}{tmp_path}/b")
        assert f"KUBECONFIG names {tmp_path}/a, {tmp_path}/b" in problem(None)

    @pytest.mark.parametrize(
        ("content", "expected"),
        [
            (b"clusters: [", "not YAML: "),
            (b"a: b\n\tc: d\n", "in line 2"),
            (b"\xff\xfe\x00", "not YAML: "),
            (b"- a\n- b\n", "Expected `object`, got `array`"),
            (b"clusters: {}\n", "Expected `array`, got `object` - at `$.clusters`"),
            (b"clusters: [{cluster: {}}]", "missing required field `name` - at `$.clusters[0]`"),
            (
                b"users: [{name: a, user: {token: 1}}]",
                "Expected `str`, got `int` - at `$.users[0].user.token`",
            ),
            (b"", "no current-context: name a context, one of (none is defined)"),
            (b"current-context: quay", 'no context "quay": use one of (none is defined)'),
        ],
    )
    def test_wrong_content(self, file: Path, content: bytes, expected: str) -> None:
        file.write_bytes(content)
        text = problem(file)
        assert text.startswith(f"{file}: ")
        assert expected in text

    def test_unknown_context_lists_the_known_ones(self, file: Path) -> None:
        write(file, document())
        assert problem(file, context="pier") == f'{file}: no context "pier": use one of quay'

    def test_no_current_context_lists_the_known_ones(self, file: Path) -> None:
        write(file, document() | {"current-context": ""})
        assert problem(file) == f"{file}: no current-context: name a context, one of quay"

    def test_context_of_a_missing_cluster(self, file: Path) -> None:
        write(file, document(context={"cluster": "sea"}))
        assert problem(file) == f'{file}: context "quay": there is no cluster "sea": use one of harbour'

    def test_context_of_a_missing_user(self, file: Path) -> None:
        write(file, document(context={"user": "captain"}))
        assert problem(file) == f'{file}: context "quay": there is no user "captain": use one of docker'

    @pytest.mark.parametrize(
        ("cluster", "expected"),
        [
            ({"server": ""}, 'server "" is not a URL: write it as https://host:port'),
            ({"server": "localhost:6443"}, 'server "localhost:6443" is not a URL'),
            ({"server": "ftp://localhost"}, "is not a URL"),
            ({"server": "https://"}, "is not a URL"),
            ({"server": "https://localhost:port"}, "is not a URL"),
            ({"server": "https://[::1"}, "is not a URL"),
            ({"server": "https://localhost/?a=b"}, "has more than a host, a port and a path"),
            ({"server": "https://u:p@localhost/"}, "has more than a host, a port and a path"),
            ({"proxy-url": "socks5://localhost:1080"}, 'proxy-url "socks5://localhost:1080" is not a URL'),
            ({"certificate-authority-data": "%%%"}, "certificate-authority-data is not base64"),
            ({"certificate-authority-data": b64(b"no")}, "certificate-authority holds no certificate"),
            ({"certificate-authority": "nowhere.crt"}, "nowhere.crt: No such file or directory"),
            (
                {"certificate-authority": "a", "certificate-authority-data": "YQ=="},
                "certificate-authority and certificate-authority-data are both given: keep one of them",
            ),
        ],
    )
    def test_cluster(self, file: Path, cluster: dict[str, object], expected: str) -> None:
        text = problem(write(file, document(cluster=cluster)))
        assert text.startswith(f'{file}: cluster "harbour": ')
        assert expected in text

    @pytest.mark.parametrize(
        ("user", "expected"),
        [
            (
                {"auth-provider": {"name": "gcp"}},
                "auth-provider has been removed from Kubernetes: use an exec plugin",
            ),
            ({"as": "captain"}, "impersonation (as, as-uid, as-groups, as-user-extra) is not supported"),
            ({"as-groups": ["crew"]}, "impersonation"),
            ({"token": "t", "username": "u"}, "a token and a password are both given"),
            ({"tokenFile": "nowhere"}, "nowhere: No such file or directory"),
            (
                {"client-key-data": "YQ=="},
                "client-certificate is missing: a client certificate needs its key",
            ),
            (
                {"client-certificate-data": "YQ=="},
                "client-key is missing: a client certificate needs its key",
            ),
        ],
    )
    def test_user(self, file: Path, user: dict[str, object], expected: str) -> None:
        text = problem(write(file, document(user=user)))
        assert text.startswith(f'{file}: user "docker": ')
        assert expected in text

    def test_authority_together_with_no_verification(self, file: Path) -> None:
        data = b64(pki.authority().certificate)
        write(file, document(cluster={"certificate-authority-data": data, "insecure-skip-tls-verify": True}))
        assert "exclude each other" in problem(file)


class TestCertificates:
    def certificate_problem(self, file: Path, *, certificate: bytes, key: bytes) -> str:
        user = {"client-certificate-data": b64(certificate), "client-key-data": b64(key)}
        text = problem(write(file, document(user=user)))
        start = f'{file}: user "docker": client-certificate '
        assert text.startswith(start)
        return text.removeprefix(start)

    def test_expired(self, file: Path) -> None:
        old = pki.issue(starts=-2 * DAY, ends=-DAY)
        yesterday = datetime.now(UTC) - DAY
        text = self.certificate_problem(file, certificate=old.certificate, key=old.key)
        assert text == f"expired on {yesterday:%Y-%m-%d %H:%M} UTC: renew it"

    def test_not_yet_valid(self, file: Path) -> None:
        early = pki.issue(starts=DAY, ends=2 * DAY)
        text = self.certificate_problem(file, certificate=early.certificate, key=early.key)
        assert text.startswith("is valid only from ")
        assert text.endswith("check the clock of this machine")

    def test_of_another_key(self, file: Path) -> None:
        text = self.certificate_problem(file, certificate=pki.client().certificate, key=pki.server().key)
        assert text == "does not belong to the client key: give the two issued together"

    def test_malformed_key(self, file: Path) -> None:
        text = self.certificate_problem(file, certificate=pki.client().certificate, key=b"nonsense")
        assert text == "comes with a client key that is not a private key in PEM format"

    def test_encrypted_key(self, file: Path) -> None:
        key = pki.encrypted(pki.client().key)
        text = self.certificate_problem(file, certificate=pki.client().certificate, key=key)
        assert text == "comes with a client key that is encrypted: give it without a password"

    @pytest.mark.parametrize("keep", [0, 1, 5, 60, 200])
    def test_cut_off(self, file: Path, keep: int) -> None:
        der = ssl.PEM_cert_to_DER_cert(pki.client().certificate.decode())
        pem = ssl.DER_cert_to_PEM_cert(der[:keep]).encode()
        assert "PEM" in self.certificate_problem(file, certificate=pem, key=pki.client().key)

    def test_authority_that_expired(self, file: Path) -> None:
        old = pki.issue(authority=True, starts=-2 * DAY, ends=-DAY)
        text = problem(write(file, document(cluster={"certificate-authority-data": b64(old.certificate)})))
        assert text.startswith(f'{file}: cluster "harbour": certificate-authority expired on ')

    def test_bundle_with_an_expired_and_a_valid_authority_is_good(self, file: Path) -> None:
        old = pki.issue(authority=True, starts=-2 * DAY, ends=-DAY)
        bundle = "# übergangsweise\n".encode() + old.certificate + pki.authority().certificate
        connection = load(write(file, document(cluster={"certificate-authority-data": b64(bundle)})))
        assert connection.ssl is not None
        assert len(connection.ssl.get_ca_certs()) == 2

    def test_base64_may_be_folded(self, file: Path) -> None:
        data = base64.encodebytes(pki.authority().certificate).decode()
        assert load(write(file, document(cluster={"certificate-authority-data": data}))).ssl is not None

    @given(
        first=st.datetimes(datetime(1950, 1, 1), datetime(2100, 1, 1)),
        length=st.timedeltas(timedelta(seconds=1), timedelta(days=300_000)),
    )
    def test_dates_are_those_that_cryptography_reads(self, first: datetime, length: timedelta) -> None:
        now = datetime.now(UTC)
        start = first.replace(tzinfo=UTC, microsecond=0)
        made = pki.issue(starts=start - now, ends=start + length - now)
        expected = x509.load_pem_x509_certificate(made.certificate)
        dates = tls.validity(ssl.PEM_cert_to_DER_cert(made.certificate.decode()))
        assert dates == (expected.not_valid_before_utc, expected.not_valid_after_utc)

    @given(st.binary(max_size=64))
    def test_noise_is_refused_and_nothing_else(self, noise: bytes) -> None:
        with pytest.raises(tls.Unusable):
            tls.validity(b"\x30" + noise)


class TestHandshake:
    """Against a real TLS server on localhost that asks for a client certificate."""

    @contextlib.asynccontextmanager
    async def server(self, tmp_path: Path) -> AsyncIterator[int]:
        """A server that answers with the common name of its client."""
        (tmp_path / "server.pem").write_bytes(pki.server().key + pki.server().certificate)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tmp_path / "server.pem")
        context.load_verify_locations(cadata=pki.authority().certificate.decode())
        context.verify_mode = ssl.CERT_OPTIONAL

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            shown = writer.get_extra_info("peercert")
            name = (
                next((value for pairs in shown["subject"] for _, value in pairs), "") if shown else "nobody"
            )
            writer.write(name.encode() + b"\n")
            await writer.drain()
            writer.close()

        listening = await asyncio.start_server(answer, "localhost", 0, ssl=context)
        async with listening:
            yield listening.sockets[0].getsockname()[1]

    async def greet(self, connection: Connection, port: int) -> str:
        reader, writer = await asyncio.open_connection(
            "localhost", port, ssl=connection.ssl, server_hostname=connection.server_hostname
        )
        try:
            return (await reader.readline()).decode().strip()
        finally:
            writer.close()
            with contextlib.suppress(ssl.SSLError, ConnectionError):
                await writer.wait_closed()

    async def test_given_authority_is_trusted_and_certificate_shown(self, tmp_path: Path, file: Path) -> None:
        user = {
            "client-certificate-data": b64(pki.client().certificate),
            "client-key-data": b64(pki.client().key),
        }
        cluster = {"certificate-authority-data": b64(pki.authority().certificate)}
        connection = load(write(file, document(cluster=cluster, user=user)))
        async with self.server(tmp_path) as port:
            assert await self.greet(connection, port) == "a client"

    async def test_certificate_and_key_from_files(self, tmp_path: Path, file: Path) -> None:
        (tmp_path / "tls.crt").write_bytes(pki.client().certificate)
        (tmp_path / "tls.key").write_bytes(pki.client().key)
        user = {"client-certificate": "tls.crt", "client-key": "tls.key"}
        cluster = {"certificate-authority-data": b64(pki.authority().certificate)}
        connection = load(write(file, document(cluster=cluster, user=user)))
        async with self.server(tmp_path) as port:
            assert await self.greet(connection, port) == "a client"

    @pytest.mark.parametrize("authority", [None, pki.issue("another", authority=True).certificate])
    async def test_server_of_another_authority_is_refused(
        self, tmp_path: Path, file: Path, authority: bytes | None
    ) -> None:
        cluster = {"certificate-authority-data": b64(authority)} if authority else {}
        connection = load(write(file, document(cluster=cluster)))
        async with self.server(tmp_path) as port:
            with pytest.raises(ssl.SSLCertVerificationError):
                await self.greet(connection, port)

    async def test_server_of_another_name_is_refused(self, tmp_path: Path, file: Path) -> None:
        cluster = {
            "certificate-authority-data": b64(pki.authority().certificate),
            "tls-server-name": "elsewhere",
        }
        connection = load(write(file, document(cluster=cluster)))
        async with self.server(tmp_path) as port:
            with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
                await self.greet(connection, port)

    async def test_nothing_is_verified_when_told_so(self, tmp_path: Path, file: Path) -> None:
        connection = load(write(file, document(cluster={"insecure-skip-tls-verify": True})))
        async with self.server(tmp_path) as port:
            assert await self.greet(connection, port) == "nobody"

    def test_private_key_never_touches_the_disk(self, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        seen: list[str] = []
        load_cert_chain = ssl.SSLContext.load_cert_chain

        def watched(self: ssl.SSLContext, path: str, **options: Any) -> None:
            seen.append(str(Path(path).readlink()))
            load_cert_chain(self, path, **options)

        monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", watched)
        open_before = set(Path("/proc/self/fd").iterdir())
        user = {
            "client-certificate-data": b64(pki.client().certificate),
            "client-key-data": b64(pki.client().key),
        }
        load(write(file, document(user=user)))
        assert [name.partition(":")[0] for name in seen] == ["/memfd"]
        assert set(Path("/proc/self/fd").iterdir()) == open_before
