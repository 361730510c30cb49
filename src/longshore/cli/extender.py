"""`longshore extender`: serve agents to a stock kube-scheduler over HTTP."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from longshore.cli import options
from longshore.cli.logs import LEVELS

if TYPE_CHECKING:
    from longshore.config import MeasurementSettings
    from longshore.serve.extender.agent_engine import AgentEngine
    from longshore.serve.extender.routes import Extender
    from longshore.serve.extender.tls import Certificates
    from longshore.serve.tls_files import TLSFiles

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
    help="Agents to serve: names from `longshore agent list`, paths of Python files, or all.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help="Port to serve on; 0 takes a free port and logs it.  [default: $HTTP_PORT, else 80]",
)
@click.option("--bind-address", default="", help="Address to serve on.  [default: all]")
@click.option(
    "--log-level",
    type=click.Choice(list(LEVELS), case_sensitive=False),
    help="What to log; TRACE adds whole requests.  [default: $LOG_LEVEL, else INFO]",
)
@options.kubeconfig
@options.context
@click.option(
    "--standalone", is_flag=True, help="Run without a cluster, for requests that contain whole nodes."
)
@options.measurements
@click.option(
    "--agent-config",
    metavar="FILE",
    help="YAML file with arguments by plugin name; they override environment variables.",
)
@click.option(
    "--fine-scores",
    is_flag=True,
    help="Return scores up to 100 instead of kube-scheduler's documented 10; use it with weight 1.",
)
@options.tls(
    serve="Serve TLS with this certificate.",
    client_ca="Accept only clients with a certificate signed by this CA, except for probes and /version.",
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
    tls: "TLSFiles | None",
) -> None:
    """Serve agents to a stock kube-scheduler over HTTP.

    The extender entry of kube-scheduler needs urlPrefix http://HOST:PORT/scheduler, filterVerb
    predicates/VERB, prioritizeVerb priorities/VERB and nodeCacheCapable true; see deploy/extender/. Agents
    read their settings from environment variables such as SAFEUTILIZATION. Without --port and
    --log-level, HTTP_PORT and LOG_LEVEL are used.
    """
    import structlog
    import uvloop

    from longshore.cli import logs
    from longshore.config import MeasurementSettings, load_measurements
    from longshore.errors import UserError
    from longshore.serve.extender.agent_choice import choose
    from longshore.serve.extender.agent_engine import make_agent_engine
    from longshore.serve.extender.tls import Certificates

    variable = os.environ.get("LOG_LEVEL", "")
    level = logs.configure_level(log_level or variable)
    log = structlog.get_logger()
    if not log_level and variable and variable.upper() not in LEVELS:
        log.warning("unknown LOG_LEVEL", found=variable, levels=", ".join(LEVELS))
    log.info("logging", log_level=level)
    if standalone and (kubeconfig or context or measurements):
        raise UserError("--standalone cannot be combined with --kubeconfig, --context or --measurements")
    settings = MeasurementSettings() if measurements is None else load_measurements(measurements)
    listen = _Listen(_port(port), bind_address, None if tls is None else Certificates(tls))
    agent_engine = make_agent_engine(
        choose([name.strip() for name in agents.split(",") if name.strip()]),
        environ=os.environ,
        arguments=_arguments(agent_config),
        fine_scores=fine_scores,
        on_broken=lambda name, problem: log.error("an agent cannot be used", plugin=name, reason=problem),
    )
    trace = level == "TRACE"
    if standalone:
        uvloop.run(_run_standalone(agent_engine, settings, listen, trace=trace))
    else:
        uvloop.run(
            _run_in_cluster(
                agent_engine, settings, listen, trace=trace, kubeconfig=kubeconfig, context=context
            )
        )


class _Listen(NamedTuple):
    port: int
    address: str
    certificates: "Certificates | None"


async def _run_standalone(
    agent_engine: "AgentEngine", settings: "MeasurementSettings", listen: _Listen, *, trace: bool
) -> None:
    from longshore.cli.signals import stop_event
    from longshore.engine import Measurements
    from longshore.kube.backoff import sleep_unless
    from longshore.serve.extender.routes import assemble

    stop = stop_event()
    extender = assemble(agent_engine, cached=False, max_age=settings.max_age, trace=trace)
    async with _serving(extender, agent_engine, listen):
        while not stop.is_set():
            # No events arrive, but agents may ask the engine for the time.
            agent_engine.engine.receive(Measurements(), now=time.monotonic())
            await sleep_unless(stop, _TICK)


async def _run_in_cluster(
    agent_engine: "AgentEngine",
    settings: "MeasurementSettings",
    listen: _Listen,
    *,
    trace: bool,
    kubeconfig: str | None,
    context: str | None,
) -> None:
    from longshore.cli.signals import stop_event
    from longshore.engine import Measurements
    from longshore.errors import UserError
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
    from longshore.serve.extender.routes import assemble

    stop = stop_event()
    try:
        connection = load(kubeconfig, context=context)
    except UserError as error:
        raise UserError(
            f"{error}; or give --standalone, to serve requests that contain whole nodes"
        ) from error
    async with Client(connection) as client, Pool(connection, size=_WRITES_AT_ONCE) as pool:
        await greet(client, rights=_RIGHTS)
        writer = Writer(pool, concurrency=_WRITES_AT_ONCE)
        by_annotations = settings.provider == "annotations"
        extender = assemble(
            agent_engine,
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
            agent_engine.engine,
            KubeCluster(client, Operations(writer), recorder, reads=agent_engine.engine.reads),
            measurements=settings,
            provider=make_provider(settings, client),
            on_measured=measured,
        )
        async with _serving(extender, agent_engine, listen):
            await host.run(until=stop)


@asynccontextmanager
async def _serving(extender: "Extender", agent_engine: "AgentEngine", listen: _Listen) -> AsyncIterator[None]:
    import structlog

    from longshore.serve.extender.http_server import listening

    async with listening(
        extender.answer, port=listen.port, address=listen.address, certificates=listen.certificates
    ) as port:
        structlog.get_logger().info(
            "serving",
            port=port,
            tls=listen.certificates is not None,
            predicates=sorted(agent_engine.predicates),
            priorities=sorted(agent_engine.priorities),
        )
        yield


def _port(port: int | None) -> int:
    from longshore.errors import UserError

    if port is not None:
        return port
    variable = os.environ.get("HTTP_PORT", "")
    if not variable:
        return _DEFAULT_PORT
    if not variable.isascii() or not variable.isdigit() or int(variable) > 65535:
        raise UserError(f"HTTP_PORT is {variable!r}: it must be a port number from 0 to 65535")
    return int(variable)


def _arguments(file: str | None) -> Mapping[str, Mapping[str, object]]:
    """Return the arguments in the file, by plugin name."""
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
    valid = isinstance(arguments, dict) and all(
        isinstance(name, str) and isinstance(args, dict) for name, args in arguments.items()
    )
    if not valid:
        raise UserError(
            f"{file}: it must map plugin names to their arguments, as in SafeOverload: {{utilization: 85}}"
        )
    return arguments
