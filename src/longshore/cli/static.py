"""`longshore static`: bind pods to the nodes that are labeled for them, and to no other node."""

import math
import os
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from longshore.engine import Engine
    from longshore.kube.config import Connection
    from longshore.live.static import StaticScheduler
    from longshore.pin.profile import StaticOptions
    from longshore.serve.metrics.bind_counts import BindCounts

_SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


@click.command(
    "static",
    epilog="Example: longshore static --name test --daemon -vv "
    "(and kubectl label node worker-1 rf.scheduler.test.default/web-0=)",
)
@click.option(
    "--name",
    envvar="SCHED_NAME",
    default="rfcustom",
    show_default=True,
    show_envvar=True,
    help="Schedule pods that have this schedulerName.",
)
@click.option(
    "-v",
    "--verbose",
    count=True,
    help="Log warnings with -v, every pod with -vv, everything with -vvv. Errors are always logged.",
)
@click.option(
    "--kubeconfig", envvar="KUBECONFIG", show_envvar=True, help="File to connect with, if it exists."
)
@click.option(
    "--incluster-base-path",
    envvar="SCHED_INCLUSTER_BASE_PATH",
    show_envvar=True,
    help=f"Folder with token and ca.crt, used without a kubeconfig.  [default: {_SERVICE_ACCOUNT}]",
)
@click.option("-d", "--daemon", is_flag=True, help="Run until stopped, instead of making one pass.")
@click.option(
    "--delay",
    type=float,
    envvar="SCHED_DELAY",
    default=10.0,
    show_default=True,
    show_envvar=True,
    help="Seconds between passes of the daemon, if it may not watch the cluster.",
)
@click.option(
    "--prometheus-port",
    type=click.IntRange(0, 65535),
    envvar="SCHED_PROMETHEUS_PORT",
    default=8000,
    show_default=True,
    show_envvar=True,
    help="Port for metrics, served on every path; 0 takes a free port and logs it.",
)
@click.option(
    "--prometheus-disable", is_flag=True, help="Do not serve metrics, as with SCHED_PROMETHEUS=false."
)
@click.option("--low-cardinality", is_flag=True, help="Leave the labels pod and node out of the metrics.")
@click.option(
    "--legacy-labels/--no-legacy-labels",
    default=True,
    show_default=True,
    help="Whether to use labels without a namespace, rf.scheduler.NAME/POD, too, with a warning.",
)
@click.option(
    "--respect-taints", is_flag=True, help="Keep pods off labeled nodes with taints they do not tolerate."
)
@click.option(
    "--random",
    "at_random",
    is_flag=True,
    help="Choose one of several labeled nodes at random, instead of the last one.",
)
def command(
    *,
    name: str,
    verbose: int,
    kubeconfig: str | None,
    incluster_base_path: str | None,
    daemon: bool,
    delay: float,
    prometheus_port: int,
    prometheus_disable: bool,
    low_cardinality: bool,
    legacy_labels: bool,
    respect_taints: bool,
    at_random: bool,
) -> None:
    """Bind pods to the nodes that are labeled for them.

    A pod whose schedulerName is NAME goes to the node with the label rf.scheduler.NAME.NAMESPACE/POD, and
    waits if no node has it. The node must be ready, must not be cordoned and must have room for the pod,
    unless the label has the value `force`. Without --daemon it makes one pass and exits.
    """
    from longshore.pin.labels import pin_key, problem_with

    if not 0 <= delay < math.inf:
        raise click.BadParameter("it must be a number of seconds, 0 or more", param_hint="--delay")
    if problem := problem_with(pin_key(name, "default", "pod")):
        raise click.BadParameter(problem, param_hint="--name")

    from longshore.cli import logs
    from longshore.errors import UserError
    from longshore.pin.profile import StaticOptions
    from longshore.serve.metrics.bind_counts import BindCounts
    from longshore.serve.server import serving_everywhere

    logs.configure_plain(verbose)
    counts = BindCounts(name, low_cardinality=low_cardinality)
    options = StaticOptions(legacy_labels=legacy_labels, respect_taints=respect_taints, random=at_random)
    scheduler = _scheduler(name, options, counts, kubeconfig=kubeconfig, base_path=incluster_base_path)
    with ExitStack() as stack:
        if not prometheus_disable and os.environ.get("SCHED_PROMETHEUS") != "false":
            try:
                stack.enter_context(
                    serving_everywhere(counts.registry, port=prometheus_port, flag="--prometheus-port")
                )
            except UserError:
                if daemon:
                    raise
                # Without --daemon, metrics are not essential.
        _run(scheduler, daemon=daemon, delay=delay)


def _scheduler(
    name: str,
    options: "StaticOptions",
    counts: "BindCounts",
    *,
    kubeconfig: str | None,
    base_path: str | None,
) -> "StaticScheduler":
    import structlog
    from msgspec.structs import replace

    from longshore.engine import Answered, Bind, Engine, Succeeded
    from longshore.engine.events import Outcome
    from longshore.kube.operations import Write, log_write
    from longshore.live.static import StaticScheduler
    from longshore.pin.profile import static_configuration, static_plugins

    log = structlog.get_logger()
    warned: set[str] = set()

    def on_legacy(key: str, node: str) -> None:
        if key not in warned:
            warned.add(key)
            log.warning(f"Label {key} of node {node} does not name a namespace: use {_with_namespace(key)}")

    def engine(volumes: bool) -> "Engine":
        chosen = replace(options, volumes=volumes)
        return Engine(static_configuration(name, chosen), plugins=static_plugins(chosen, on_legacy=on_legacy))

    def on_write(effect: Write, outcome: Outcome) -> None:
        if not isinstance(effect, Bind):
            log_write(effect, outcome)
        elif isinstance(outcome, Succeeded | Answered):
            counts.bound(namespace=effect.namespace, pod=effect.name, node=effect.node)
            log.info(f"Pod {effect.name} scheduled on node {effect.node}")
        else:
            counts.refused(
                namespace=effect.namespace,
                pod=effect.name,
                node=effect.node,
                http_status=outcome.status,
                reason=outcome.reason,
            )
            why = outcome.message
            log.error(f"Pod {effect.namespace}/{effect.name} not bound to node {effect.node}: {why}")

    return StaticScheduler(
        connect=lambda: _connection(kubeconfig, base_path), engine=engine, on_write=on_write
    )


def _with_namespace(key: str) -> str:
    prefix, _, pod = key.partition("/")
    return f"{prefix}.NAMESPACE/{pod}"


def _connection(kubeconfig: str | None, base_path: str | None) -> "Connection":
    """Return the kubeconfig if it exists, else the pod's service account, else what kubectl would use."""
    from longshore.errors import UserError
    from longshore.kube.config import in_cluster, load

    files = [file for file in (kubeconfig or "").split(os.pathsep) if file]
    if any(Path(file).exists() for file in files):
        return load(files[0]) if len(files) == 1 else load()
    folder = Path(base_path or _SERVICE_ACCOUNT)
    if (folder / "token").exists():
        return in_cluster(folder)
    if not files and not base_path and Path("~/.kube/config").expanduser().exists():
        return load()
    looked = f"{', '.join(files) or '~/.kube/config'} and {folder / 'token'}"
    raise UserError(f"No kubeconfig or token found: looked for {looked}; give --kubeconfig FILE")


def _run(scheduler: "StaticScheduler", *, daemon: bool, delay: float) -> None:
    import uvloop

    from longshore.cli.signals import stop_event

    async def run() -> None:
        if not daemon:
            await scheduler.once()
            return
        await scheduler.follow(stop_event(), delay=delay)

    uvloop.run(run())
