"""The flags about planner services, for every command that calls them."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from longshore.cli import options

if TYPE_CHECKING:
    from longshore.kube.planner_calls import ClientTLS

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "--planner-fallback",
        type=click.Choice(["built-in", "none"]),
        help="What plans pods that planner services do not: the built-in planner, or nobody.  "
        "[default: built-in]",
    ),
    click.option(
        "--planner-namespace",
        "planner_namespaces",
        multiple=True,
        metavar="NAMESPACE",
        help="Take planner services of this namespace only; may be given several times.  [default: of any]",
    ),
    click.option(
        "--planner-address",
        "planner_addresses",
        multiple=True,
        metavar="[NAMESPACE/SERVICE=]HOST:PORT",
        help="Call the planner service here, or all of them; may be given several times.",
    ),
    click.option("--planner-ca", help="Call planners by TLS, and trust certificates of this authority."),
    click.option("--planner-certificate", help="Certificate to show to planners."),
    click.option("--planner-key", help="The key of that certificate."),
)


def planner_options(command: F) -> F:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def arguments_of(
    fallback: str | None, namespaces: tuple[str, ...], addresses: tuple[str, ...]
) -> dict[str, object]:
    """The flags as arguments of the plugin; only those that were given."""
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
                f"--planner-address {text}: give HOST:PORT, or NAMESPACE/SERVICE=HOST:PORT for one of them"
            )
        by_service[service or "*"] = address
    if by_service:
        found["plannerAddresses"] = by_service
    return found


def tls_of(ca: str | None, certificate: str | None, key: str | None) -> "ClientTLS | None":
    from longshore.errors import UserError
    from longshore.kube.planner_calls import ClientTLS

    options.require_both(planner_certificate=certificate, planner_key=key)
    if ca is None:
        if certificate is not None:
            raise UserError("--planner-certificate needs --planner-ca: whom to trust")
        return None
    return ClientTLS(
        Path(ca), None if certificate is None else Path(certificate), None if key is None else Path(key)
    )
