"""The options that several commands share, and the checks of what was given."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from longshore.errors import UserError

if TYPE_CHECKING:
    from longshore.serve.tls_files import TLSFiles


def duration(*names: str, help: str) -> Callable[[Any], Any]:  # noqa: A002 - the name click uses
    """An option that takes a duration as Go writes it. The command gets seconds, or None."""
    return click.option(*names, metavar="DURATION", callback=_seconds, help=help)


def _seconds(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    from longshore.api.duration import parse_duration

    seconds = None if value is None else parse_duration(value)
    if value is not None and (seconds is None or seconds <= 0):
        raise click.BadParameter(
            f"{value!r} is not a duration above 0, such as 300ms, 2s or 1m30s", ctx, param
        )
    return seconds


kubeconfig = click.option(
    "--kubeconfig", type=click.Path(), help="File to connect with, instead of $KUBECONFIG and its defaults."
)
context = click.option("--context", help="Context of the kubeconfig, instead of the current one.")

all_namespaces = click.option(
    "-A", "--all-namespaces", is_flag=True, help="With --list: include all namespaces."
)

measurements = click.option(
    "--measurements",
    type=click.Path(),
    metavar="FILE",
    help="YAML file with the keys of longshore.measurements, which says where measurements come from.",
)

output = click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Text for people, or JSON for programs.",
)

plugins = click.option(
    "--plugin",
    "plugins",
    multiple=True,
    metavar="FILE.py",
    help="File with plugins of your own, or module:attribute. May be repeated.",
)


def namespace(of: str) -> Callable[[Any], Any]:
    """The option -n, which names the namespace of the object `of`."""
    return click.option("-n", "--namespace", help=f"Namespace of the {of}.  [default: the context's]")


def metrics_port(default: int) -> Callable[[Any], Any]:
    """The option that chooses the port of metrics and health."""
    return click.option(
        "--metrics-port",
        type=click.IntRange(0, 65535),
        default=default,
        show_default=True,
        help="Port for /metrics, /healthz, /livez and /readyz; 0 takes a free port and logs it.",
    )


def tls(*, serve: str, client_ca: str = "") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The options for the certificate of a server; the command gets TLSFiles, or None, as `tls`.

    `serve` is the help of the certificate and `client_ca` that of --client-ca-file, which is left out if it
    is empty.
    """

    def decorated(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def with_files(
            *,
            tls_cert_file: str | None,
            tls_private_key_file: str | None,
            client_ca_file: str | None = None,
            **others: Any,
        ) -> Any:
            return command(tls=_tls_files(tls_cert_file, tls_private_key_file, client_ca_file), **others)

        wrapped: Callable[..., Any] = with_files
        if client_ca:
            wrapped = click.option("--client-ca-file", help=client_ca)(wrapped)
        wrapped = click.option("--tls-private-key-file", help="Private key of that certificate.")(wrapped)
        return click.option("--tls-cert-file", help=serve)(wrapped)

    return decorated


def _tls_files(certificate: str | None, key: str | None, client_ca: str | None) -> "TLSFiles | None":
    require_both(tls_cert_file=certificate, tls_private_key_file=key)
    if certificate is None or key is None:
        if client_ca is not None:
            raise UserError(
                "--client-ca-file requires --tls-cert-file: clients present certificates only over TLS"
            )
        return None

    from longshore.serve.tls_files import TLSFiles

    return TLSFiles(Path(certificate), Path(key), None if client_ca is None else Path(client_ca))


def split(name: str, namespace: str | None) -> tuple[str | None, str]:
    """Return the namespace, if given, and the name. NAMESPACE/NAME is the same as NAME -n NAMESPACE."""
    before, _, rest = name.rpartition("/")
    if before and namespace and before != namespace:
        raise click.UsageError(
            f"{name} and -n {namespace} name different namespaces: give only one of them",
            click.get_current_context(),
        )
    return before or namespace or None, rest


def reject(*problems: tuple[object, str]) -> None:
    """Raise UsageError with the text of the first problem whose condition is true."""
    for condition, problem in problems:
        if condition:
            raise click.UsageError(problem, click.get_current_context())


def require_both(**flags: str | None) -> None:
    """Raise UserError if only one of two flags is given."""
    if len({value is None for value in flags.values()}) > 1:
        names = " and ".join(f"--{name.replace('_', '-')}" for name in flags)
        raise UserError(f"{names} must be given together")
