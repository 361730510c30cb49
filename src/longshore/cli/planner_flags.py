"""The flags of `longshore run` for planner services."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from longshore.cli import options

if TYPE_CHECKING:
    from longshore.kube.planner_calls import ClientTLS

_OPTIONS = (
    click.option(
        "--planner-fallback",
        type=click.Choice(["built-in", "none"]),
        help="Planner for pods that no planner service plans: the built-in planner, or none.  "
        "[default: built-in]",
    ),
    click.option(
        "--planner-namespace",
        "planner_namespaces",
        multiple=True,
        metavar="NAMESPACE",
        help="Use only planner services in this namespace. May be repeated.  [default: all namespaces]",
    ),
    click.option(
        "--planner-address",
        "planner_addresses",
        multiple=True,
        metavar="[NAMESPACE/SERVICE=]HOST:PORT",
        help="Call planner services, or only the named one, at this address. May be repeated.",
    ),
    click.option(
        "--planner-ca", help="Call planners over TLS, and verify their certificates with this CA file."
    ),
    click.option("--planner-certificate", help="Client certificate to present to planners."),
    click.option("--planner-key", help="Private key of that certificate."),
)


class PlannerFlags(NamedTuple):
    """What the flags say: arguments of the plugin PodSetPlanner, and how to call planners over TLS."""

    arguments: dict[str, object]
    tls: "ClientTLS | None"


def planner_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the flags. The command gets PlannerFlags as `planner`."""

    @wraps(command)
    def with_planner(
        *,
        planner_fallback: str | None,
        planner_namespaces: tuple[str, ...],
        planner_addresses: tuple[str, ...],
        planner_ca: str | None,
        planner_certificate: str | None,
        planner_key: str | None,
        **others: Any,
    ) -> Any:
        arguments = _arguments(planner_fallback, planner_namespaces, planner_addresses)
        tls = _tls(planner_ca, planner_certificate, planner_key)
        return command(planner=PlannerFlags(arguments, tls), **others)

    decorated: Callable[..., Any] = with_planner
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated


def _arguments(
    fallback: str | None, namespaces: tuple[str, ...], addresses: tuple[str, ...]
) -> dict[str, object]:
    from longshore.errors import UserError

    found: dict[str, object] = {}
    if fallback is not None:
        found["plannerFallback"] = fallback
    if namespaces:
        found["plannerNamespaces"] = list(namespaces)
    by_service = {}
    for text in addresses:
        service, _, address = text.rpartition("=")
        host, _, port = address.rpartition(":")
        if not host or not port.isdigit() or (service and service.count("/") != 1):
            raise UserError(
                f"--planner-address {text}: give HOST:PORT, or NAMESPACE/SERVICE=HOST:PORT for one service"
            )
        by_service[service or "*"] = address
    if by_service:
        found["plannerAddresses"] = by_service
    return found


def _tls(ca: str | None, certificate: str | None, key: str | None) -> "ClientTLS | None":
    from longshore.errors import UserError
    from longshore.kube.planner_calls import ClientTLS

    options.require_both(planner_certificate=certificate, planner_key=key)
    if ca is None:
        if certificate is not None:
            raise UserError(
                "--planner-certificate requires --planner-ca: planners are called over TLS only with a CA"
            )
        return None
    return ClientTLS(
        Path(ca), None if certificate is None else Path(certificate), None if key is None else Path(key)
    )
