"""`longshore run`: schedule the pods of a real cluster."""

import asyncio
import signal

import click


@click.command("run", epilog="Example: longshore run --scheduler-name longshore --kubeconfig ~/.kube/config")
@click.option(
    "--scheduler-name", default="longshore", show_default=True, help="Schedule pods that ask for this name."
)
@click.option(
    "--kubeconfig", type=click.Path(), help="File to connect with, instead of $KUBECONFIG and the like."
)
@click.option("--context", help="Context of the kubeconfig, instead of the current one.")
@click.option(
    "--leader-elect/--no-leader-elect",
    default=True,
    show_default=True,
    help="Take the lease named like the scheduler before scheduling.",
)
@click.option(
    "--tie-break",
    type=click.Choice(["random", "first"]),
    default="random",
    show_default=True,
    help="Which of several equally good nodes is taken.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the random tie-break.")
@click.option("-v", "--verbose", is_flag=True, help="Log every pod.")
def command(
    *,
    scheduler_name: str,
    kubeconfig: str | None,
    context: str | None,
    leader_elect: bool,
    tie_break: str,
    seed: int,
    verbose: bool,
) -> None:
    """Schedule the pods of a real cluster that ask for this scheduler.

    Stops cleanly on SIGTERM and Ctrl-C: binds under way finish, the lease is released.
    """
    import uvloop

    from longshore.cli import logs
    from longshore.engine import Engine
    from longshore.errors import UserError
    from longshore.kube.config import load
    from longshore.live.run import schedule

    if not scheduler_name:
        raise UserError("the scheduler name is empty: give the name that pods have in spec.schedulerName")
    logs.configure(verbose=verbose)
    engine = Engine(
        scheduler_name=scheduler_name, tie_break="first" if tie_break == "first" else "random", seed=seed
    )

    async def run() -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        await schedule(
            lambda: load(kubeconfig, context=context), engine, leader_elect=leader_elect, stop=stop
        )

    uvloop.run(run())
