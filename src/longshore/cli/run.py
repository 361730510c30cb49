"""`longshore run`: schedule the pods of a real cluster."""

import time
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Literal

import click

from longshore.cli import options
from longshore.cli.planner_flags import planner_options

if TYPE_CHECKING:
    from longshore.config import Configuration
    from longshore.engine.engine import ControllerFactory
    from longshore.live.time_limit import TimeLimit


@click.command("run", epilog="Example: longshore run --config scheduler.yaml --kubeconfig ~/.kube/config")
@click.option("--config", type=click.Path(), help="kube-scheduler's configuration file; flags go before it.")
@click.option(
    "--scheduler-name", help="Schedule pods that ask for this name.  [default: longshore, or the file's]"
)
@options.kubeconfig
@options.context
@click.option(
    "--leader-elect/--no-leader-elect",
    default=None,
    help="Take the lease, named like the scheduler or as the file says, before scheduling.  [default: yes]",
)
@options.plugins
@click.option(
    "--tie-break",
    type=click.Choice(["random", "first", "heap"]),
    help="Which of several equally good nodes is taken; heap is kube-scheduler's way.  [default: random]",
)
@click.option("--seed", type=int, help="Seed of the random tie-break.  [default: 0]")
@click.option(
    "--metrics-port",
    type=click.IntRange(0, 65535),
    default=10259,
    show_default=True,
    help="Serve /metrics, /healthz, /livez and /readyz here; 0 takes a free port and logs it.",
)
@click.option("--bind-address", default="", help="Serve them at this address only.  [default: all]")
@click.option("--tls-cert-file", help="Serve them by HTTPS with this certificate.")
@click.option("--tls-private-key-file", help="The key of the certificate.")
@click.option(
    "--controllers",
    metavar="LIST",
    help="Controllers to run beside it, by comma: triggers (quiet times of pod sets); none for nobody.  "
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
    tls_cert_file: str | None,
    tls_private_key_file: str | None,
    controllers: str | None,
    planner_fallback: str | None,
    planner_namespaces: tuple[str, ...],
    planner_addresses: tuple[str, ...],
    planner_ca: str | None,
    planner_certificate: str | None,
    planner_key: str | None,
    verbose: bool,
) -> None:
    """Schedule the pods of a real cluster that ask for this scheduler.

    Without --config it has two profiles: the default one, and podset-planner-scheduler, which holds sets of
    pods until their trigger fires and binds them by a plan (see docs/podsets.md). Stops cleanly on SIGTERM
    and Ctrl-C: binds under way finish, the lease is released.
    """
    import structlog
    import uvloop

    from longshore.cli import logs
    from longshore.cli.planner_flags import arguments_of, tls_of
    from longshore.cli.setups import set_up
    from longshore.cli.signals import stop_event
    from longshore.engine import Engine
    from longshore.errors import UserError
    from longshore.kube.config import Connection, load
    from longshore.kube.planner_calls import PlannerCalls
    from longshore.live import clock
    from longshore.live.run import schedule
    from longshore.live.time_limit import TimeLimit
    from longshore.live.vitals import Vitals
    from longshore.measure.providers import settings_for
    from longshore.serve import Health, Metrics, registry_of, serving
    from longshore.serve.decisions import DecisionRoute
    from longshore.serve.server import tls_from

    if scheduler_name == "":
        raise UserError("the scheduler name is empty: give the name that pods have in spec.schedulerName")
    options.require_both(tls_cert_file=tls_cert_file, tls_private_key_file=tls_private_key_file)
    logs.configure(verbose=verbose)
    planner_args = arguments_of(planner_fallback, planner_namespaces, planner_addresses)
    if planner_args and config is not None:
        raise UserError("--planner-… and --config: say it in the file, as arguments of PodSetPlanner")
    setup = set_up(config, plugins=plugins, scheduler_name=scheduler_name, planner_args=planner_args)
    for warning in setup.warnings:
        structlog.get_logger().warning("configuration", file=config, warning=warning)
    configuration = _overruled(
        setup.configuration,
        scheduler_name=scheduler_name if config is not None else None,
        leader_elect=leader_elect,
        tie_break=tie_break,
        seed=seed,
    )
    limit = TimeLimit(configuration.longshore.plugin_timeout)
    foreign = {name: plugin for name, plugin in setup.plugins.items() if not plugin.own}
    with setup.telling_where():
        engine = Engine(
            configuration,
            plugins={**setup.plugins, **limit.apply(foreign)},
            controllers=_controllers(controllers, configuration),
            epoch=clock.epoch(),
            stopwatch=time.monotonic,
        )
    kubeconfig = kubeconfig or configuration.client_connection.kubeconfig or None
    metrics = Metrics(engine)
    engine.observe(metrics)
    tls = tls_from(tls_cert_file, tls_private_key_file) if tls_cert_file and tls_private_key_file else None

    planners = PlannerCalls(tls_of(planner_ca, planner_certificate, planner_key))

    def connect() -> Connection:
        return load(kubeconfig, context=context)

    def attend(vitals: Vitals) -> AbstractContextManager[int]:
        return serving(
            registry_of(metrics, vitals),
            Health(live={**vitals.live, "plugins": lambda: _stuck(limit)}, ready=vitals.ready),
            port=metrics_port,
            address=bind_address,
            tls=tls,
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


def _controllers(names: str | None, configuration: "Configuration") -> "list[ControllerFactory]":
    from longshore.errors import UserError
    from longshore.podset.profile import holds_sets
    from longshore.podset.trigger_controller import TriggerController

    known: dict[str, ControllerFactory] = {"triggers": TriggerController}
    if names is None:
        # Who schedules in kube-scheduler's place, with its rights, may not even look at triggers.
        names = "triggers" if any(map(holds_sets, configuration.profiles)) else ""
    chosen = [name.strip() for name in names.split(",") if name.strip() not in ("", "none")]
    unknown = [name for name in chosen if name not in known]
    if unknown:
        raise UserError(f"no such controller: {', '.join(unknown)}; there are {', '.join(known)}, or none")
    return [known[name] for name in dict.fromkeys(chosen)]


def _stuck(limit: "TimeLimit") -> str:
    """The plugin that does not come back, in words."""
    stuck = limit.stuck
    if stuck is None:
        return ""
    return f"{stuck.plugin} was called {time.monotonic() - stuck.since:.0f} s ago and has not come back"


def _overruled(
    configuration: "Configuration",
    *,
    scheduler_name: str | None,
    leader_elect: bool | None,
    tie_break: Literal["random", "first", "heap"] | None,
    seed: int | None,
) -> "Configuration":
    """The configuration with what the flags say instead."""
    from msgspec.structs import replace

    from longshore.errors import UserError

    if scheduler_name is not None:
        if len(configuration.profiles) > 1:
            raise UserError(
                "--scheduler-name goes with a single profile, and the configuration has "
                f"{len(configuration.profiles)}: name them there"
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
