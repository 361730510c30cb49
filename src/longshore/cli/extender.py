"""`longshore extender`: agents behind a stock kube-scheduler, by HTTP."""

import asyncio
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from longshore.cli import options
from longshore.cli.logs import LEVELS

if TYPE_CHECKING:
    from longshore.config import MeasurementSettings
    from longshore.serve.extender.agent_engine import Served
    from longshore.serve.extender.tls import Certificates

_DEFAULT_PORT = 80
_WRITES_AT_ONCE = 8
_TICK = 1.0
_RIGHTS = "deploy/extender/service-account.yaml"


@click.command(
    "extender", epilog="Example: longshore extender --agents safe,congestion --port 5401 --standalone"
)
@click.option(
    "--agents",
    required=True,
    metavar="NAME,…",
    help="Which agents to serve: names that `longshore agent list` shows, paths of Python files, or all.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help="Where to serve; 0 takes a free one.  [default: $HTTP_PORT, or 80]",
)
@click.option("--bind-address", default="", help="Address to serve on.  [default: all]")
@click.option(
    "--log-level",
    type=click.Choice(list(LEVELS), case_sensitive=False),
    help="What to log; TRACE adds whole requests.  [default: $LOG_LEVEL, or INFO]",
)
@options.kubeconfig
@options.context
@click.option("--standalone", is_flag=True, help="Without a cluster: only nodes that are sent whole.")
@options.measurements
@click.option(
    "--agent-config",
    metavar="FILE",
    help="Arguments of the agents' plugins by name, in YAML; they go before environment variables.",
)
@click.option(
    "--fine-scores",
    is_flag=True,
    help="Scores from 0 to 100, past kube-scheduler's documented 10: for entries of weight 1.",
)
@click.option("--tls-cert-file", help="Serve by TLS with this certificate.")
@click.option("--tls-private-key-file", help="The key of the certificate.")
@click.option(
    "--client-ca-file",
    help="Hear only callers with a certificate of this authority; probes and /version need none.",
)
def command(
    *,
    agents: str,
    port: int | None,
    bind_address: str,
    log_level: str | None,
    kubeconfig: str | None,
    context: str | None,
    standalone: bool,
    measurements: str | None,
    agent_config: str | None,
    fine_scores: bool,
    tls_cert_file: str | None,
    tls_private_key_file: str | None,
    client_ca_file: str | None,
) -> None:
    """Serve agents to a stock kube-scheduler, by HTTP.

    In its extender entry: urlPrefix http://HOST:PORT/scheduler, filterVerb predicates/VERB, prioritizeVerb
    priorities/VERB, nodeCacheCapable true; see deploy/extender/. Agents take their settings from environment
    variables such as SAFEUTILIZATION; HTTP_PORT and LOG_LEVEL stand for the flags.
    """
    import structlog
    import uvloop

    from longshore.cli import logs
    from longshore.config import MeasurementSettings, load_measurements
    from longshore.errors import UserError
    from longshore.serve.extender.agent_choice import choose
    from longshore.serve.extender.agent_engine import serve

    said = os.environ.get("LOG_LEVEL", "")
    level = logs.configure_level(log_level or said)
    log = structlog.get_logger()
    if not log_level and said and said.upper() not in LEVELS:
        log.warning("LOG_LEVEL is none of the levels", found=said, levels=", ".join(LEVELS))
    log.info("logging", log_level=level)
    if standalone and (kubeconfig or context or measurements):
        raise UserError("--standalone goes without a cluster: leave --kubeconfig, --context, --measurements")
    settings = MeasurementSettings() if measurements is None else load_measurements(measurements)
    number = _port(port)
    certificates = _certificates(tls_cert_file, tls_private_key_file, client_ca_file)
    served = serve(
        choose([name.strip() for name in agents.split(",") if name.strip()]),
        environ=os.environ,
        arguments=_arguments(agent_config),
        fine_scores=fine_scores,
        tell=lambda name, problem: log.error("an agent cannot be used", plugin=name, reason=problem),
    )
    uvloop.run(
        _run(
            served,
            settings,
            port=number,
            address=bind_address,
            certificates=certificates,
            trace=level == "TRACE",
            kubeconfig=kubeconfig,
            context=context,
            standalone=standalone,
        )
    )


async def _run(
    served: "Served",
    settings: "MeasurementSettings",
    *,
    port: int,
    address: str,
    certificates: "Certificates | None",
    trace: bool,
    kubeconfig: str | None,
    context: str | None,
    standalone: bool,
) -> None:
    from longshore.cli.signals import stop_event
    from longshore.engine import Measurements
    from longshore.errors import UserError
    from longshore.kube.backoff import sleep_unless
    from longshore.kube.client import Client
    from longshore.kube.cluster import KubeCluster
    from longshore.kube.config import load
    from longshore.kube.operations import Operations
    from longshore.kube.pool import Pool
    from longshore.kube.recorder import EventRecorder
    from longshore.kube.writer import Writer
    from longshore.live.extender_host import ExtenderHost
    from longshore.live.run import greet
    from longshore.measure.providers import make_provider
    from longshore.serve.extender.http_server import listening
    from longshore.serve.extender.routes import assemble

    stop = stop_event()
    if standalone:
        extender = assemble(served, cached=False, max_age=settings.max_age, trace=trace)
        async with listening(extender.answer, port=port, address=address, certificates=certificates) as taken:
            _tell(taken, served, certificates)
            while not stop.is_set():
                # Nothing happens by itself, but agents may ask for the time.
                served.engine.receive(Measurements(), now=time.monotonic())
                await sleep_unless(stop, _TICK)
        return
    try:
        connection = load(kubeconfig, context=context)
    except UserError as error:
        raise UserError(
            f"{error}; or give --standalone, to answer about nodes that are sent whole"
        ) from error
    async with Client(connection) as client, Pool(connection, size=_WRITES_AT_ONCE) as pool:
        await greet(client, rights=_RIGHTS)
        writer = Writer(pool, concurrency=_WRITES_AT_ONCE)
        by_annotations = settings.provider == "annotations"
        extender = assemble(
            served,
            cached=True,
            read_load=by_annotations,
            max_age=settings.max_age,
            settle=settings.settle,
            trace=trace,
            hindrance=lambda: host.hindrance,
            later=asyncio.get_running_loop().call_soon,
        )

        def measured(measurements: Measurements) -> None:
            extender.measured(measurements.values)

        recorder = EventRecorder(writer, controller="longshore-extender")
        host = ExtenderHost(
            served.engine,
            KubeCluster(client, Operations(writer), recorder, reads=served.engine.reads),
            measurements=settings,
            provider=make_provider(settings, client),
            on_measured=measured,
        )
        async with listening(extender.answer, port=port, address=address, certificates=certificates) as taken:
            _tell(taken, served, certificates)
            await host.run(until=stop)


def _tell(port: int, served: "Served", certificates: "Certificates | None") -> None:
    import structlog

    structlog.get_logger().info(
        "serving",
        port=port,
        tls=certificates is not None,
        predicates=sorted(served.predicates),
        priorities=sorted(served.priorities),
    )


def _port(port: int | None) -> int:
    from longshore.errors import UserError

    if port is not None:
        return port
    said = os.environ.get("HTTP_PORT", "")
    if not said:
        return _DEFAULT_PORT
    if not said.isascii() or not said.isdigit() or int(said) > 65535:
        raise UserError(f"HTTP_PORT is {said!r}: it needs to be the number of a port, up to 65535")
    return int(said)


def _certificates(certificate: str | None, key: str | None, client_ca: str | None) -> "Certificates | None":
    from longshore.errors import UserError
    from longshore.serve.extender.tls import Certificates, TLSFiles

    options.require_both(tls_cert_file=certificate, tls_private_key_file=key)
    if certificate is None or key is None:
        if client_ca is not None:
            raise UserError("--client-ca-file needs --tls-cert-file: callers show certificates by TLS only")
        return None
    files = TLSFiles(Path(certificate), Path(key), None if client_ca is None else Path(client_ca))
    return Certificates(files)


def _arguments(file: str | None) -> Mapping[str, Mapping[str, object]]:
    """What the file says, by plugin."""
    import yaml

    from longshore.errors import UserError

    if file is None:
        return {}
    try:
        content: Any = yaml.safe_load(Path(file).read_text())
    except OSError as error:
        raise UserError(f"cannot read {file}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise UserError(f"{file} is not YAML: {' '.join(str(error).split())}") from error
    arguments: dict[str, dict[str, object]] = {} if content is None else content
    right = isinstance(arguments, dict) and all(
        isinstance(name, str) and isinstance(args, dict) for name, args in arguments.items()
    )
    if not right:
        raise UserError(
            f"{file}: give plugin names with their arguments, as in SafeOverload: {{utilization: 85}}"
        )
    return arguments
