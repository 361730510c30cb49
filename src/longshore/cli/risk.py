"""`longshore risk`: show how likely nodes are to be overloaded."""

import asyncio
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from longshore.cli import options
from longshore.errors import UserError

if TYPE_CHECKING:
    from longshore.agents.safe import SafeOverloadArgs
    from longshore.ask.risks import Risks
    from longshore.cluster import PodInfo
    from longshore.config import MeasurementSettings

_PERCENT = click.IntRange(0, 100)
_PICTURES = (".png", ".svg", ".pdf")


@click.command("risk", epilog="Example: longshore risk --cpu 500m --memory 1Gi --plot risk.png")
@click.argument("nodes", metavar="[NODE]...", nargs=-1)
@click.option("--cpu", default="0", help="CPU request of one more pod on each node, such as 500m.")
@click.option("--memory", default="0", help="Memory request of one more pod on each node, such as 1Gi.")
@click.option(
    "--utilization",
    type=_PERCENT,
    help="Threshold: how much of a node may be used, in percent.  [default: $SAFEUTILIZATION, else 90]",
)
@click.option(
    "--percentile",
    type=_PERCENT,
    help="Acceptable risk that more than the threshold is used, in percent.  "
    "[default: $SAFEPERCENTILE, else 30]",
)
@click.option(
    "--forecast-weight",
    type=_PERCENT,
    help="Weight of forecasts, in percent.  [default: $SAFEFORECASTWEIGHT, else 20]",
)
@click.option(
    "--missing",
    type=click.Choice(["Neutral", "FailOpen", "FailClosed", "Requests"]),
    default="Neutral",
    show_default=True,
    help="How to treat nodes without fresh measurements.",
)
@options.measurements
@click.option("--all", "everything", is_flag=True, help="Show all nodes, not only the worst.")
@click.option("--plot", type=click.Path(), metavar="FILE", help="Draw the distributions: .png, .svg or .pdf.")
@options.kubeconfig
@options.context
@options.output
def command(
    *,
    nodes: tuple[str, ...],
    cpu: str,
    memory: str,
    utilization: int | None,
    percentile: int | None,
    forecast_weight: int | None,
    missing: str,
    measurements: str | None,
    everything: bool,
    plot: str | None,
    kubeconfig: str | None,
    context: str | None,
    output: str,
) -> None:
    """Show how likely nodes are to be overloaded.

    For each node, it shows how much is used and how much that varies, the risk that more than the threshold
    is used, and the scores of the agents safe-overload and safe-balance. The worst nodes come first.
    Measurements are read from the nodes' annotations, unless --measurements names a provider. You need
    permission to list nodes and, with --missing Requests, to list pods.
    """
    if plot is not None:
        _check_plot(plot)

    import msgspec

    from longshore.agents.safe import SafeOverload, SafeOverloadArgs
    from longshore.ask.risks import demand
    from longshore.cli import logs
    from longshore.cli.printing import print_json
    from longshore.config import MeasurementSettings, load_measurements

    logs.configure(verbose=False)
    given = {
        "utilization": utilization,
        "percentile": percentile,
        "forecastWeight": forecast_weight,
        "missing": missing,
        "printTable": False,
    }
    arguments = SafeOverload.environment(os.environ) | {k: v for k, v in given.items() if v is not None}
    found = asyncio.run(
        _look(
            kubeconfig,
            context,
            load_measurements(measurements) if measurements else MeasurementSettings(),
            nodes,
            pod=demand({"cpu": cpu, "memory": memory}),
            args=msgspec.convert(arguments, SafeOverloadArgs),
        )
    )
    if plot is not None:
        from longshore.cli.risk_plot import draw_plot

        left_out = draw_plot(found, plot)
        more = f" of the worst {len(found.nodes) - left_out} nodes" if left_out else ""
        click.echo(f"distributions{more} drawn to {plot}", err=True)
    if output == "json":
        print_json(found)
        return

    from longshore.cli.risk_text import draw

    draw(found, everything=everything or bool(nodes))


def _check_plot(plot: str) -> None:
    """Raise an error if the plot cannot be written, before anything is measured."""
    file = Path(plot)
    if file.suffix.lower() not in _PICTURES:
        raise click.BadParameter(f"{plot} must end in .png, .svg or .pdf", param_hint="--plot")
    if not file.absolute().parent.is_dir():
        raise UserError(f"cannot write {plot}: folder {file.absolute().parent} does not exist")
    try:
        import matplotlib as _  # noqa: F401 - only whether it is there
    except ImportError as error:
        raise UserError("--plot needs matplotlib: pip install 'longshore[plot]'") from error


async def _look(
    kubeconfig: str | None,
    context: str | None,
    settings: "MeasurementSettings",
    only: tuple[str, ...],
    *,
    pod: "PodInfo",
    args: "SafeOverloadArgs",
) -> "Risks":
    from longshore.ask.risks import risks
    from longshore.cli.connection import connected
    from longshore.kube.caller import list_objects
    from longshore.kube.kinds import NOT_ENDED
    from longshore.kube.resources import NODES, PODS
    from longshore.measure.providers import make_provider

    async with connected(kubeconfig, context) as (client, _):
        nodes = await list_objects(client, NODES)
        pods = {}
        if args.missing == "Requests":
            pods = await list_objects(client, PODS, selectors={"fieldSelector": NOT_ENDED})
        provider = make_provider(settings, client)
        values = None
        if provider is not None:
            try:
                values = await provider.measure(list(nodes.values()))
            finally:
                await provider.close()
    return risks(
        nodes,
        list(pods.values()),
        values,
        pod=pod,
        args=args,
        max_age=settings.max_age,
        now=time.time(),
        only=only,
    )
