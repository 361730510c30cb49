"""Asks a running scheduler for its recorded decisions about a pod."""

from dataclasses import replace
from ipaddress import ip_address
from urllib.parse import urlsplit

import msgspec

from longshore.engine.answers.records import Decision, Recorded, path_of
from longshore.errors import UserError
from longshore.kube.client import Client
from longshore.kube.config import Connection
from longshore.kube.errors import ApiError, ConnectionFailed


async def ask(url: str, connection: Connection, *, namespace: str, name: str) -> tuple[Decision, ...]:
    """Return the decisions, requested with the token for the API server. Raises UserError."""
    address = urlsplit(url)
    if address.scheme not in ("http", "https") or not address.hostname:
        raise UserError(f'--scheduler "{url}" is not a valid URL: write it as https://HOST:PORT')
    if address.scheme == "http" and not _is_loopback(address.hostname):
        raise UserError(
            f"--scheduler {url} would send your token without encryption: use https, or "
            "http://localhost:10259 with kubectl port-forward"
        )
    try:
        if await connection.authorization() is None:
            raise UserError("the kubeconfig has no token for the scheduler: use a kubeconfig with a token")
        there = replace(connection, server=url.rstrip("/"), server_hostname=None, proxy_url=None)
        async with Client(there) as client:
            answer = await client.request("GET", path_of(namespace, name))
        return msgspec.json.decode(answer, type=Recorded).decisions
    except ApiError as error:
        raise UserError(f"the scheduler rejected the request: {error}") from error
    except ConnectionFailed as error:
        raise UserError(f"cannot connect to the scheduler: {error}") from error
    except msgspec.DecodeError as error:
        raise UserError(f"{url} is not a Longshore scheduler: {error}") from error


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
