"""`longshore run`: schedule the pods of a real cluster."""

import time
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Literal

import click

from longshore.cli import options
from longshore.cli.planner_flags import planner_options

if TYPE_CHECKING:
    from longshore.cli.planner_flags import PlannerFlags
    from longshore.config import Configuration
    from longshore.config.setup import Setup
    from longshore.engine import Engine
    from longshore.engine.engine import ControllerFactory
    from longshore.live.time_limit import TimeLimit
    from longshore.serve.tls_files import TLSFiles


@click.command("run", epilog="Example: longshore run --config scheduler.yaml --kubeconfig ~/.kube/config")
@click.option(
    "--config", type=click.Path(), help="Configuration file as for kube-scheduler; flags override it."
)
@click.option(
    "--scheduler-name",
    help="Schedule pods that have this schedulerName.  [default: longshore, or the file's]",
)
@options.kubeconfig
@options.context
@click.option(
    "--leader-elect/--no-leader-elect",
    default=None,
    help="Acquire a lease before scheduling; the default name is the scheduler's.  [default: yes]",
)
@options.plugins
@click.option(
    "--tie-break",
    type=click.Choice(["random", "first", "heap"]),
    help="How to choose between nodes with the same score; heap is kube-scheduler's way.  [default: random]",
)
@click.option("--seed", type=int, help="Seed of the random tie-break.  [default: 0]")
@options.metrics_port(10259)
@click.option(
    "--bind-address", default="", help="Serve metrics and health on this address only.  [default: all]"
)
@options.tls(serve="Serve metrics and health over HTTPS with this certificate.")
@click.option(
    "--controllers",
    metavar="LIST",
    help="Controllers to run as well, comma-separated: triggers, for the triggers of pod sets; or none.  "
    "[default: triggers, if a profile holds pod sets]",
)
@planner_options
@click.option("-v", "--verbose", is_flag=True, help="Log every pod.")
def command(
    *,
    config: str | None,
    scheduler_name: str | None,
    kubeconfig: str | None,
    context: str | None,
    leader_elect: bool | None,
    plugins: tuple[str, ...],
    tie_break: Literal["random", "first", "heap"] | None,
    seed: int | None,
    metrics_port: int,
    bind_address: str,
    tls: "TLSFiles | None",
    controllers: str | None,
    planner: "PlannerFlags",
    verbose: bool,
) -> None:
    """Schedule the pods of a real cluster that name this scheduler.

    Without --config there are two profiles: the default one, and podset-planner-scheduler, which holds pod
    sets until their trigger fires and then binds them by a plan (see docs/podsets.md). On SIGTERM and Ctrl-C
    it finishes the binds that are in progress, releases the lease and exits.
    """
    import structlog
    import uvloop

    from longshore.cli import logs
    from longshore.cli.setups import set_up
    from longshore.cli.signals import stop_event
    from longshore.errors import UserError
    from longshore.kube.config import Connection, load
    from longshore.kube.planner_calls import PlannerCalls
    from longshore.live.run import schedule
    from longshore.live.time_limit import TimeLimit
    from longshore.live.vitals import Vitals
    from longshore.measure.providers import settings_for
    from longshore.serve import Health, Metrics, registry_of, serving
    from longshore.serve.decisions import DecisionRoute

    if scheduler_name == "":
        raise UserError("--scheduler-name is empty: give the name that pods have in spec.schedulerName")
    logs.configure(verbose=verbose)
    if planner.arguments and config is not None:
        raise UserError(
            "--planner-fallback, --planner-namespace and --planner-address cannot be combined with --config: "
            "set them in the file, under pluginConfig for PodSetPlanner"
        )
    setup = set_up(config, plugins=plugins, scheduler_name=scheduler_name, planner_args=planner.arguments)
    for warning in setup.warnings:
        structlog.get_logger().warning("configuration", file=config, warning=warning)
    configuration = _with_flags(
        setup.configuration,
        scheduler_name=scheduler_name if config is not None else None,
        leader_elect=leader_elect,
        tie_break=tie_break,
        seed=seed,
    )
    limit = TimeLimit(configuration.longshore.plugin_timeout)
    engine = _engine(setup, configuration, limit, _controllers(controllers, configuration))
    kubeconfig = kubeconfig or configuration.client_connection.kubeconfig or None
    metrics = Metrics(engine)
    engine.observe(metrics)
    certificate = None if tls is None else tls.context()
    planners = PlannerCalls(planner.tls)

    def connect() -> Connection:
        return load(kubeconfig, context=context)

    def attend(vitals: Vitals) -> AbstractContextManager[int]:
        return serving(
            registry_of(metrics, vitals),
            Health(live={**vitals.live, "plugins": lambda: _stuck(limit)}, ready=vitals.ready),
            port=metrics_port,
            address=bind_address,
            tls=certificate,
            decisions=DecisionRoute(engine.records, connect),
        )

    async def run() -> None:
        await schedule(
            connect,
            engine,
            configuration,
            stop=stop_event(),
            attend=attend,
            planners=planners,
            measurements=settings_for(configuration, setup.plugins),
        )

    uvloop.run(run())


def _engine(
    setup: "Setup",
    configuration: "Configuration",
    limit: "TimeLimit",
    controllers: "list[ControllerFactory]",
) -> "Engine":
    """Return the engine, with the time limit applied to plugins that are not Longshore's own."""
    from longshore.engine import Engine
    from longshore.live import clock

    foreign = {name: plugin for name, plugin in setup.plugins.items() if not plugin.own}
    with setup.telling_where():
        return Engine(
            configuration,
            plugins={**setup.plugins, **limit.apply(foreign)},
            controllers=controllers,
            epoch=clock.epoch(),
            stopwatch=time.monotonic,
        )


def _controllers(names: str | None, configuration: "Configuration") -> "list[ControllerFactory]":
    from longshore.errors import UserError
    from longshore.podset.profile import holds_sets
    from longshore.podset.trigger_controller import TriggerController

    known: dict[str, ControllerFactory] = {"triggers": TriggerController}
    if names is None:
        # A scheduler that replaces kube-scheduler, with its permissions, may not read triggers.
        names = "triggers" if any(map(holds_sets, configuration.profiles)) else ""
    chosen = [name.strip() for name in names.split(",") if name.strip() not in ("", "none")]
    unknown = [name for name in chosen if name not in known]
    if unknown:
        raise UserError(
            f"--controllers: unknown controller {', '.join(unknown)}: choose from {', '.join(known)}, or none"
        )
    return [known[name] for name in dict.fromkeys(chosen)]


def _stuck(limit: "TimeLimit") -> str:
    """Return which plugin exceeds the time limit and does not return, or an empty string."""
    stuck = limit.stuck
    if stuck is None:
        return ""
    return f"{stuck.plugin} was called {time.monotonic() - stuck.since:.0f} s ago and has not returned"


def _with_flags(
    configuration: "Configuration",
    *,
    scheduler_name: str | None,
    leader_elect: bool | None,
    tie_break: Literal["random", "first", "heap"] | None,
    seed: int | None,
) -> "Configuration":
    """Return the configuration with the values that flags override."""
    from msgspec.structs import replace

    from longshore.errors import UserError

    if scheduler_name is not None:
        if len(configuration.profiles) > 1:
            raise UserError(
                "--scheduler-name requires a configuration with one profile, and this one has "
                f"{len(configuration.profiles)}: set schedulerName in the profiles instead"
            )
        only = replace(configuration.profiles[0], scheduler_name=scheduler_name)
        configuration = replace(configuration, profiles=(only,))
    if leader_elect is not None:
        election = replace(configuration.leader_election, leader_elect=leader_elect)
        configuration = replace(configuration, leader_election=election)
    ours = configuration.longshore
    if tie_break is not None:
        ours = replace(ours, tie_break=tie_break)
    if seed is not None:
        ours = replace(ours, seed=seed)
    return replace(configuration, longshore=ours)
