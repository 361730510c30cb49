"""`longshore risk --plot`: the distributions fitted to the load of each node, against the threshold.

Each node has a small plot of cpu above one of memory. The area beyond the threshold is shaded; its share of
the whole is the risk, which is also shown as a number. All curves have the same height, because the curve of
a steady node would otherwise dwarf the others. matplotlib comes with the extra `plot`.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from longshore.agents.beta import NEGLIGIBLE, log_density
from longshore.ask.risks import NodeRisk, ResourceRisk, Risks
from longshore.cli.risk_text import headline, percent
from longshore.cluster.arrays import Floats
from longshore.errors import UserError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST = 12
_COLUMNS = 3
# In inches: one plot, and the margins around them all.
_CELL = (3.9, 1.75)
_MARGIN = {"left": 0.75, "right": 0.3, "top": 1.05, "bottom": 1.0}
_GAP = (0.7, 0.62)
_DOTS_PER_INCH = 150

# The palette of Okabe and Ito, which color-blind people can distinguish.
_LINE = {"cpu": "#0072B2", "memory": "#009E73"}
_BEYOND = "#D55E00"
_GREY = "#666666"
_LONGEST_NAME = 34
# Without the ends, where densities may be infinite.
_SHARES = np.linspace(0.0005, 0.9995, 1999)
# Points around the mean, in deviations: a narrow peak would lie between two of _SHARES.
_ABOUT_MEAN = np.linspace(-6, 6, 241)
_HEIGHT = 1.3
_END, _CUT = 0.02, 1.1


def draw_plot(risks: Risks, file: str) -> int:
    """Write the plot in the format of the file's suffix. Return the number of nodes that are not drawn."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UserError("--plot needs matplotlib: pip install 'longshore[plot]'") from error

    nodes = risks.nodes[:_MOST]
    left_out = len(risks.nodes) - len(nodes)
    columns = min(_COLUMNS, max(len(nodes), 1))
    rows = max(-(-len(nodes) // columns), 1)
    # One plot alone must be wide enough for the text around it.
    cell = (max(_CELL[0], 7.5 / columns), _CELL[1])
    width = _MARGIN["left"] + columns * cell[0] + (columns - 1) * _GAP[0] + _MARGIN["right"]
    height = _MARGIN["top"] + rows * cell[1] + (rows - 1) * _GAP[1] + _MARGIN["bottom"]
    figure = Figure(figsize=(width, height), facecolor="white")
    grid = figure.add_gridspec(
        rows,
        columns,
        left=_MARGIN["left"] / width,
        right=1 - _MARGIN["right"] / width,
        top=1 - _MARGIN["top"] / height,
        bottom=_MARGIN["bottom"] / height,
        hspace=_GAP[1] / cell[1],
        wspace=_GAP[0] / cell[0],
    )
    for number, node in enumerate(nodes):
        inner = grid[number // columns, number % columns].subgridspec(len(node.resources), 1, hspace=0)
        pair = [figure.add_subplot(inner[place]) for place in range(len(node.resources))]
        _draw_node(pair, node, risks.utilization / 100)
    _add_captions(figure, risks, left_out)
    try:
        figure.savefig(file, dpi=_DOTS_PER_INCH)
    except OSError as error:
        raise UserError(f"cannot write {file}: {error.strerror or error}") from error
    return left_out


def _add_captions(figure: "Figure", risks: Risks, left_out: int) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    width, height = figure.get_size_inches()
    left = 0.3 / width
    caption = headline(risks)
    if left_out:
        caption += f"; only the worst {_MOST} nodes are drawn, without {left_out} more"
    title: dict[str, Any] = {"fontsize": 14, "fontweight": "bold", "va": "center"}
    figure.text(left, 1 - 0.3 / height, "How close nodes are to overload", **title)
    figure.text(left, 1 - 0.47 / height, caption[0].upper() + caption[1:], fontsize=9, color=_GREY, va="top")
    figure.supxlabel("share of the node that is used", fontsize=9, y=0.52 / height, va="center")
    middle = (_MARGIN["bottom"] + height - _MARGIN["top"]) / 2 / height
    figure.supylabel("probability density", fontsize=9, x=0.22 / width, y=middle, ha="center")
    handles: list[Any] = [
        *(Line2D([], [], color=color, label=resource) for resource, color in _LINE.items()),
        Patch(color=_BEYOND, alpha=0.55, label="risk: beyond the threshold"),
        Line2D([], [], color="black", linestyle="--", linewidth=1, label=f"threshold, {risks.utilization}%"),
    ]
    look: dict[str, Any] = {"ncols": len(handles), "fontsize": 8, "frameon": False, "borderaxespad": 0.4}
    figure.legend(handles=handles, loc="lower center", **look)


def _draw_node(pair: list["Axes"], node: NodeRisk, threshold: float) -> None:
    for axes, (resource, found) in zip(pair, node.resources.items(), strict=True):
        axes.set_xlim(0, 1)
        axes.set_ylim(0, _HEIGHT)
        axes.set_yticks([])
        axes.set_ylabel(resource, fontsize=8, color=_LINE[resource])
        axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0%", "25%", "50%", "75%", "100%"], fontsize=7)
        for side in ("top", "right", "left"):
            axes.spines[side].set_visible(False)
        axes.axvline(threshold, color="black", linestyle="--", linewidth=1)
        _draw_resource(axes, resource, found, threshold)
    for axes in pair[:-1]:
        axes.tick_params(labelbottom=False, length=2)
    name = node.name
    if len(name) > _LONGEST_NAME:
        name = f"{name[: _LONGEST_NAME // 2]}…{name[-_LONGEST_NAME // 2 :]}"
    pair[0].set_title(name, fontsize=10, loc="left", pad=4)
    if not node.accepted:
        pair[0].set_title("refused", fontsize=9, loc="right", pad=4, color=_BEYOND, fontweight="bold")


def _draw_resource(axes: "Axes", resource: str, found: ResourceRisk, threshold: float) -> None:
    if found.mu is None or found.risk is None:
        axes.text(0.02, 0.5 * _HEIGHT, "no fresh measurements", fontsize=8, color=_GREY, va="center")
        return
    color = _LINE[resource]
    if found.sigma and found.alpha is not None and found.beta is not None:
        shares = _shares(found.mu, found.sigma, threshold)
        heights = _relative(found.alpha, found.beta, shares)
        axes.plot(shares, heights, color=color, linewidth=1.4)
        within, beyond = shares <= threshold, shares >= threshold
        axes.fill_between(shares[within], heights[within], color=color, alpha=0.15, linewidth=0)
        axes.fill_between(shares[beyond], heights[beyond], color=_BEYOND, alpha=0.55, linewidth=0)
        how = ""
    elif found.sigma and found.sigma >= NEGLIGIBLE and found.mu > 0:
        axes.plot([found.mu], [0.08], marker="D", markersize=5, color=_BEYOND, clip_on=False)
        how = "varies more than\nany distribution"
    else:
        over = found.mu > threshold
        axes.plot([found.mu] * 2, [0, 1], color=_BEYOND if over else color, linewidth=2.5, clip_on=False)
        still = "deviation unknown" if found.deviation is None else "does not vary"
        how = still if found.mu > 0 else "uses nothing"
    note = f"risk {percent(found.risk)}" + (f"\n{how}" if how else "")
    words: dict[str, Any] = {"color": "black"} if found.accepted else {"color": _BEYOND, "fontweight": "bold"}
    # Put the note on the side away from the curve, and not on the threshold.
    right = threshold - 0.02 if threshold > 0.75 else 0.98
    side, align = (0.02, "left") if found.mu > 0.5 else (right, "right")
    behind = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1}
    place: dict[str, Any] = {"ha": align, "va": "top", "bbox": behind}
    axes.text(side, 0.93 * _HEIGHT, note, fontsize=8, linespacing=1.15, **words, **place)


def _shares(mean: float, deviation: float, threshold: float) -> Floats:
    """The points of a curve: evenly spaced ones, more around the mean, and one at the threshold."""
    shares = np.unique(np.concatenate([_SHARES, mean + deviation * _ABOUT_MEAN, [threshold]]))
    return shares[(shares > 0) & (shares < 1)]


def _relative(alpha: float, beta: float, shares: Floats) -> Floats:
    """The density relative to its maximum. Where it is infinite at an end, it is cut off there."""
    logarithms = log_density(shares, alpha, beta)
    middle = (shares > _END) & (shares < 1 - _END) if min(alpha, beta) < 1 else slice(None)
    above = np.minimum(logarithms - np.nanmax(logarithms[middle]), np.log(_CUT))
    heights: Floats = np.nan_to_num(np.exp(above))
    return heights
