"""Which node a label of a time series means: exporters are known by name, by address, or by some of both."""

import re
from collections.abc import Iterable, Sequence

from longshore.api import Node
from longshore.config import MeasurementSettings

# So many of each show what does not fit.
_SHOWN = 3
_WITH_PORT = re.compile(r"\[(?P<bracketed>[^\]]*)\](?::\d+)?|(?P<plain>[^:]*):\d+")


class NodeNames:
    """Of the nodes that there are now."""

    def __init__(self, settings: MeasurementSettings, nodes: Sequence[Node]) -> None:
        self._label = settings.node_label
        self._from = settings.node_from
        self._pattern = re.compile(settings.node_pattern) if settings.node_pattern else None
        self._names = {
            key: node.metadata.name for node in nodes for key in reversed(_keys(node, settings.node_from))
        }

    def find(self, label: str) -> str | None:
        """The name of the node, or None if the label means none that we know."""
        if self._pattern is not None:
            match = self._pattern.search(label)
            if match is None:
                return None
            label = match[1] or ""
        return self._names.get(label) or self._names.get(without_port(label))

    def mismatch(self, series: Iterable[dict[str, str]]) -> str:
        """Why none of the series is of a node, in one line."""
        found = list(series)
        values = [labels[self._label] for labels in found if self._label in labels]
        if not values:
            others = sorted({name for labels in found for name in labels}) or ["none at all"]
            return f"no series has the label {self._label} (nodeLabel), only {_some(others)}"
        wanted = "names" if self._from == "name" else "addresses (InternalIP)"
        nodes = _some(self._names) or "none"
        pattern = f", through the nodePattern {self._pattern.pattern}" if self._pattern else ""
        return (
            f"no series is of a node: the label {self._label} is {_some(values)}{pattern}, and the {wanted} "
            f"of nodes are {nodes}; see nodeLabel, nodeFrom and nodePattern"
        )


def without_port(label: str) -> str:
    """`10.0.0.1:9100` is `10.0.0.1`, `[fd00::1]:9100` is `fd00::1`; what has no port stays as it is."""
    match = _WITH_PORT.fullmatch(label)
    if match is None:
        return label
    return match["bracketed"] if match["bracketed"] is not None else match["plain"]


def _keys(node: Node, kind: str) -> list[str]:
    if kind == "name":
        return [node.metadata.name]
    return [address.address for address in node.status.addresses if address.type == "InternalIP"]


def _some(texts: Iterable[str]) -> str:
    distinct = sorted(set(texts))
    more = f" and {len(distinct) - _SHOWN} more" if len(distinct) > _SHOWN else ""
    return ", ".join(distinct[:_SHOWN]) + more
