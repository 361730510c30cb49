"""The address of the API server and our credentials for it, found as kubectl finds them.

    connection = load()                                  # $KUBECONFIG, ~/.kube/config or the pod we run in
    connection = load("cluster.yaml", context="staging")

A problem with a file or a certificate is reported here, in one line, rather than by a TLS handshake that
fails later.
"""

import os
import ssl
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from longshore.errors import UserError
from longshore.kube import tls
from longshore.kube.credentials import Credentials, Fixed, TokenFile, basic, bearer
from longshore.kube.errors import ConnectionFailed
from longshore.kube.exec_plugin import ExecPlugin
from longshore.kube.kubeconfig import Cluster, Kubeconfig, NamedEntry, User, known, merged

__all__ = ["Connection", "Credentials", "in_cluster", "load"]

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """Everything that a client needs to know about its server.

    If an exec plugin provides client certificates, `ssl` changes with them: load one for each event loop.
    """

    # "https://host:port[/prefix]", without a slash at the end
    server: str
    # None for plain HTTP
    ssl: ssl.SSLContext | None
    credentials: Credentials
    namespace: str = "default"
    # The name that the server's certificate must have, if it is not the host's
    server_hostname: str | None = None
    proxy_url: str | None = None

    async def authorization(self) -> str | None:
        """Return the Authorization header. Raises ConnectionFailed if a file or plugin fails for now."""
        try:
            return await self.credentials.authorization()
        except UserError as error:
            raise ConnectionFailed(str(error), sent=False) from error


def load(kubeconfig: str | Path | None = None, *, context: str | None = None) -> Connection:
    """Return the connection of a context; by default, of the current one."""
    if kubeconfig is not None:
        return _connection(merged([Path(kubeconfig)]), context)
    listed = os.environ.get("KUBECONFIG", "")
    candidates = dict.fromkeys(Path(name) for name in listed.split(os.pathsep) if name)
    if not candidates:
        # Without a home directory, as in a bare container, this is a path that does not exist.
        candidates = {Path(os.path.expanduser("~/.kube/config")): None}  # noqa: PTH111 - Path would raise
    config = merged(path for path in candidates if not _is_missing(path))
    if not config.is_empty:
        return _connection(config, context)
    if context is None and _is_in_cluster():
        return in_cluster()
    if config.files:
        return _connection(config, context)
    searched = ", ".join(map(str, candidates))
    source = "KUBECONFIG names" if listed else "looked for"
    raise UserError(f"no kubeconfig found ({source} {searched}): set KUBECONFIG or name a file")


def in_cluster(folder: Path | None = None) -> Connection:
    """Return the connection of the pod that we run in, with its service account, mounted in the folder."""
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST", ""), os.environ.get("KUBERNETES_SERVICE_PORT", "")
    if not (host and port):
        raise UserError("not in a pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set")
    folder = folder or SERVICE_ACCOUNT
    authority, namespace = folder / "ca.crt", folder / "namespace"
    try:
        context = tls.trust(authority.read_bytes())
    except OSError as error:
        raise UserError(f"cannot read {authority}: {error.strerror}: mount the service account") from error
    except tls.Unusable as problem:
        raise UserError(f"{authority} {problem}") from problem
    return Connection(
        server=f"https://{f'[{host}]' if ':' in host else host}:{port}",
        ssl=context,
        credentials=TokenFile(folder / "token"),
        namespace=(namespace.read_text().strip() if namespace.exists() else "") or "default",
    )


def _is_missing(path: Path) -> bool:
    """Whether the file does not exist. One that exists but is not accessible is an error when it is read."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def _is_in_cluster() -> bool:
    return bool(os.environ.get("KUBERNETES_SERVICE_HOST")) and (SERVICE_ACCOUNT / "token").exists()


def _connection(config: Kubeconfig, name: str | None) -> Connection:
    context = config.context(name)
    cluster = config.clusters.get(context.value.cluster)
    if cluster is None:
        clusters = known(config.clusters)
        raise context.error(f'there is no cluster "{context.value.cluster}": use one of {clusters}')
    user = config.users.get(context.value.user)
    if user is None:
        raise context.error(f'there is no user "{context.value.user}": use one of {known(config.users)}')
    server = _url(cluster, "server", cluster.value.server)
    proxy = _url(cluster, "proxy-url", cluster.value.proxy_url) if cluster.value.proxy_url else None
    encryption, credentials = _identity(cluster, user) if server.startswith("https:") else (None, Fixed(None))
    return Connection(
        server=server,
        ssl=encryption,
        credentials=credentials,
        namespace=context.value.namespace or "default",
        server_hostname=cluster.value.tls_server_name or None,
        proxy_url=proxy,
    )


def _url(cluster: NamedEntry[Cluster], name: str, value: str) -> str:
    try:
        parts = urlsplit(value)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # a port that is not a number, or a bracket that is not closed
        usable = False
    if not usable:
        raise cluster.error(f'{name} "{value}" is not a URL: write it as https://host:port')
    if parts.query or parts.fragment or (parts.username and name == "server"):
        raise cluster.error(
            f'{name} "{parts.hostname}" has more than a host, a port and a path: remove the rest'
        )
    return value.rstrip("/")


def _identity(cluster: NamedEntry[Cluster], user: NamedEntry[User]) -> tuple[ssl.SSLContext, Credentials]:
    """Return the authority that we trust and the credentials that we present.

    Without TLS there are none: like kubectl, we send no credentials to a server that we cannot verify.
    """
    given, skip = cluster.value, cluster.value.insecure_skip_tls_verify
    path, data = given.certificate_authority, given.certificate_authority_data
    authority = cluster.content("certificate-authority", path=path, data=data)
    if authority is not None and skip:
        raise cluster.error(
            "certificate-authority and insecure-skip-tls-verify cannot be combined: keep one of them"
        )
    try:
        context = tls.trust(authority, verify=not skip)
    except tls.Unusable as problem:
        raise cluster.error(f"certificate-authority {problem}") from problem
    return context, _credentials(user, context, cluster=given, authority=authority)


def _credentials(
    user: NamedEntry[User], context: ssl.SSLContext, *, cluster: Cluster, authority: bytes | None
) -> Credentials:
    """Return the credentials of the user. A plugin is run only if the entry itself has no credentials."""
    given = user.value
    if given.auth_provider is not None:
        raise user.error("auth-provider has been removed from Kubernetes: use an exec plugin in its place")
    if given.impersonate or given.as_uid or given.as_groups or given.as_user_extra:
        raise user.error("impersonation (as, as-uid, as-groups, as-user-extra) is not supported: remove it")
    if given.token and (given.username or given.password):
        raise user.error("a token and a password are both given: keep one of them")
    has_certificate = _show_certificate(user, context)
    if given.token_file:
        try:
            return TokenFile(user.path(given.token_file))
        except UserError as error:
            raise user.error(str(error)) from error
    if given.token:
        return Fixed(bearer(given.token.strip()))
    if given.username or given.password:
        return Fixed(basic(given.username, given.password))
    if given.exec is None or has_certificate:
        return Fixed(None)
    return ExecPlugin(user, given.exec, cluster=cluster, authority=authority, context=context)


def _show_certificate(user: NamedEntry[User], context: ssl.SSLContext) -> bool:
    given = user.value
    certificate = user.content(
        "client-certificate", path=given.client_certificate, data=given.client_certificate_data
    )
    key = user.content("client-key", path=given.client_key, data=given.client_key_data)
    if certificate is None and key is None:
        return False
    if certificate is None or key is None:
        missing = "client-certificate" if certificate is None else "client-key"
        raise user.error(f"{missing} is missing: a client certificate needs its key")
    try:
        tls.identify(context, certificate=certificate, key=key)
    except tls.Unusable as problem:
        raise user.error(f"client-certificate {problem}") from problem
    return True
