"""`longshore controller`: fire the triggers of pod sets, without scheduling."""

from contextlib import AbstractContextManager

import click

from longshore.cli import options


@click.command("controller", epilog="Example: longshore controller --kubeconfig ~/.kube/config")
@options.kubeconfig
@options.context
@click.option(
    "--leader-elect/--no-leader-elect", default=True, show_default=True, help="Take the lease before acting."
)
@options.metrics_port(7081)
@click.option("-v", "--verbose", is_flag=True, help="Log every write.")
def command(
    *, kubeconfig: str | None, context: str | None, leader_elect: bool, metrics_port: int, verbose: bool
) -> None:
    """Fire the triggers of pod sets whose quiet time is over, and update their status.

    `longshore run` does this too, unless it runs with --controllers none. Use this command to run the
    triggers' controller as a process of its own.
    """
    import uvloop
    from msgspec.structs import replace

    from longshore.api import Pod
    from longshore.cli import logs
    from longshore.cli.signals import stop_event
    from longshore.config import LeaderElection, default_configuration
    from longshore.engine import Engine
    from longshore.kube.config import load
    from longshore.live import clock
    from longshore.live.run import schedule
    from longshore.live.vitals import Vitals
    from longshore.podset.trigger_controller import TriggerController
    from longshore.serve import Health, Metrics, registry_of, serving

    logs.configure(verbose=verbose)
    # No pod names this scheduler, so nothing is scheduled.
    configuration = replace(
        default_configuration("longshore.dev/controller"),
        leader_election=LeaderElection(leader_elect=leader_elect, resource_name="longshore-controller"),
    )
    engine = Engine(configuration, controllers=[TriggerController], epoch=clock.epoch())
    metrics = Metrics(engine)

    async def run() -> None:
        def attend(vitals: Vitals) -> AbstractContextManager[int]:
            health = Health(live=vitals.live, ready=vitals.ready)
            return serving(registry_of(metrics, vitals), health, port=metrics_port)

        await schedule(
            lambda: load(kubeconfig, context=context),
            engine,
            configuration,
            stop=stop_event(),
            attend=attend,
            kinds=(Pod,),
            rights="deploy/controller.yaml",
        )

    uvloop.run(run())
