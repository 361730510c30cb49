"""Finding the API server as kubectl does, and one-line errors for invalid files and certificates."""

import asyncio
import os
from datetime import timedelta
from pathlib import Path

import pytest
from tests.kube import pki
from tests.kube.kubeconfigs import b64, document, problem, write

from longshore.errors import UserError
from longshore.kube import config
from longshore.kube.config import Connection, in_cluster, load

DAY = timedelta(days=1)


@pytest.fixture(autouse=True)
def nothing_around(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide any kubeconfig and service account of the machine that runs the test."""
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(config, "SERVICE_ACCOUNT", tmp_path / "serviceaccount")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config.yaml"


def authorization(connection: Connection) -> str | None:
    return asyncio.run(connection.credentials.authorization())


class TestFinding:
    def test_an_explicit_file_overrides_the_environment(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("KUBECONFIG", str(write(tmp_path / "other", document(user={"token": "other"}))))
        assert (
            authorization(load(write(tmp_path / "mine", document(user={"token": "mine"})))) == "Bearer mine"
        )

    def test_the_home_directory_is_used_by_default(self, tmp_path: Path) -> None:
        write(tmp_path / "home/.kube/config", document(user={"token": "home"}))
        assert authorization(load()) == "Bearer home"

    def test_the_environment_overrides_the_home_directory(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write(tmp_path / "home/.kube/config", document(user={"token": "home"}))
        monkeypatch.setenv("KUBECONFIG", str(write(tmp_path / "named", document(user={"token": "named"}))))
        assert authorization(load()) == "Bearer named"

    def test_of_several_files_the_first_to_define_an_entry_provides_all_of_it(
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

    def test_a_specified_context_overrides_the_current_one(self, file: Path) -> None:
        content = document()
        content["contexts"].append(
            {"name": "pier", "context": {"cluster": "harbour", "user": "docker", "namespace": "p"}}
        )
        assert load(write(file, content), context="pier").namespace == "p"

    def test_relative_paths_are_relative_to_the_folder_of_their_file(
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

    def test_a_context_without_namespace_means_default(self, file: Path) -> None:
        assert load(write(file, document())).namespace == "default"

    def test_the_server_keeps_its_prefix_and_loses_its_trailing_slash(self, file: Path) -> None:
        connection = load(write(file, document(cluster={"server": "https://localhost/k8s/clusters/c-1/"})))
        assert connection.server == "https://localhost/k8s/clusters/c-1"

    def test_the_server_name_and_the_proxy_are_used(self, file: Path) -> None:
        cluster = {"tls-server-name": "kubernetes", "proxy-url": "http://u:p@proxy:3128"}
        connection = load(write(file, document(cluster=cluster)))
        assert (connection.server_hostname, connection.proxy_url) == ("kubernetes", "http://u:p@proxy:3128")

    def test_plain_http_uses_no_tls_and_no_credentials(self, file: Path) -> None:
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

    def test_the_service_account_is_used_without_a_file(self, pod: Path) -> None:
        connection = load()
        assert (connection.server, connection.namespace) == ("https://10.0.0.1:443", "harbour")
        assert authorization(connection) == "Bearer one"

    def test_the_service_account_is_used_if_all_files_are_missing_or_empty(
        self, pod: Path, file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("KUBECONFIG", f"{file}{os.pathsep}{write(file.with_name('empty'), {})}")
        assert load().server == "https://10.0.0.1:443"

    def test_a_file_overrides_the_service_account(
        self, pod: Path, file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("KUBECONFIG", str(write(file, document())))
        assert load().server == "https://localhost:6443"

    def test_an_ipv6_address_is_bracketed(self, pod: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
        assert in_cluster().server == "https://[fd00::1]:443"

    def test_a_context_needs_a_kubeconfig(self, pod: Path) -> None:
        assert "no kubeconfig found" in problem(None, context="quay")

    def test_a_missing_authority_is_reported(self, pod: Path) -> None:
        (pod / "ca.crt").unlink()
        with pytest.raises(UserError, match=r"ca\.crt: No such file or directory: mount the service account"):
            in_cluster()

    def test_an_expired_authority_is_reported(self, pod: Path) -> None:
        (pod / "ca.crt").write_bytes(pki.issue(authority=True, starts=-2 * DAY, ends=-DAY).certificate)
        with pytest.raises(UserError, match=r"ca\.crt expired on"):
            in_cluster()

    def test_a_missing_token_is_reported(self, pod: Path) -> None:
        (pod / "token").unlink()
        with pytest.raises(UserError, match="cannot read the token file"):
            in_cluster()

    def test_running_outside_a_pod_is_reported(self) -> None:
        with pytest.raises(UserError, match="not in a pod"):
            in_cluster()


class TestInvalidFile:
    def test_a_wrong_path_is_reported(self, tmp_path: Path) -> None:
        path = tmp_path / "nowhere"
        assert (
            problem(path) == f"cannot read the kubeconfig {path}: No such file or directory: correct the path"
        )

    def test_an_unreadable_path_is_reported(self, tmp_path: Path) -> None:
        assert "Is a directory" in problem(tmp_path)

    def test_without_any_kubeconfig_the_searched_path_is_reported(self, tmp_path: Path) -> None:
        looked_for = tmp_path / "home/.kube/config"
        expected = f"no kubeconfig found (looked for {looked_for}): set KUBECONFIG or name a file"
        assert problem(None) == expected

    def test_missing_files_of_the_environment_are_listed(
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
            (b"", "no current-context: specify a context, one of (none is defined)"),
            (b"current-context: quay", 'no context "quay": use one of (none is defined)'),
        ],
    )
    def test_invalid_content_is_reported(self, file: Path, content: bytes, expected: str) -> None:
        file.write_bytes(content)
        text = problem(file)
        assert text.startswith(f"{file}: ")
        assert expected in text

    def test_an_unknown_context_is_reported_with_the_known_ones(self, file: Path) -> None:
        write(file, document())
        assert problem(file, context="pier") == f'{file}: no context "pier": use one of quay'

    def test_a_missing_current_context_is_reported_with_the_known_ones(self, file: Path) -> None:
        write(file, document() | {"current-context": ""})
        assert problem(file) == f"{file}: no current-context: specify a context, one of quay"

    def test_a_context_with_a_missing_cluster_is_reported(self, file: Path) -> None:
        write(file, document(context={"cluster": "sea"}))
        assert problem(file) == f'{file}: context "quay": there is no cluster "sea": use one of harbour'

    def test_a_context_with_a_missing_user_is_reported(self, file: Path) -> None:
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
            ({"certificate-authority-data": b64(b"no")}, "certificate-authority contains no certificate"),
            ({"certificate-authority": "nowhere.crt"}, "nowhere.crt: No such file or directory"),
            (
                {"certificate-authority": "a", "certificate-authority-data": "YQ=="},
                "certificate-authority and certificate-authority-data are both given: keep one of them",
            ),
        ],
    )
    def test_an_invalid_cluster_entry_is_reported(
        self, file: Path, cluster: dict[str, object], expected: str
    ) -> None:
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
    def test_an_invalid_user_entry_is_reported(
        self, file: Path, user: dict[str, object], expected: str
    ) -> None:
        text = problem(write(file, document(user=user)))
        assert text.startswith(f'{file}: user "docker": ')
        assert expected in text

    def test_an_authority_cannot_be_combined_with_no_verification(self, file: Path) -> None:
        data = b64(pki.authority().certificate)
        write(file, document(cluster={"certificate-authority-data": data, "insecure-skip-tls-verify": True}))
        assert "cannot be combined" in problem(file)
