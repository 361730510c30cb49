"""Finds the node of a time series by a label, which may contain a node's name or address."""

import re
from collections.abc import Iterable, Sequence

from longshore.api import Node
from longshore.config import MeasurementSettings

# How many values to show in a message.
_SHOWN = 3
_WITH_PORT = re.compile(r"\[(?P<bracketed>[^\]]*)\](?::\d+)?|(?P<plain>[^:]*):\d+")


class NodeNames:
    """The names of the nodes that exist now, by their names or addresses."""

    def __init__(self, settings: MeasurementSettings, nodes: Sequence[Node]) -> None:
        self._label = settings.node_label
        self._from = settings.node_from
        self._pattern = re.compile(settings.node_pattern) if settings.node_pattern else None
        self._names = {
            key: node.metadata.name for node in nodes for key in reversed(_keys(node, settings.node_from))
        }

    def find(self, label: str) -> str | None:
        """Return the name of the node, or None if no node matches the label."""
        if self._pattern is not None:
            match = self._pattern.search(label)
            if match is None:
                return None
            label = match[1] or ""
        return self._names.get(label) or self._names.get(without_port(label))

    def mismatch(self, series: Iterable[dict[str, str]]) -> str:
        """Return one line that says why no series belongs to a node."""
        found = list(series)
        values = [labels[self._label] for labels in found if self._label in labels]
        if not values:
            others = sorted({name for labels in found for name in labels}) or ["no labels"]
            return f"no series has the label {self._label} (nodeLabel); found only {_some(others)}"
        wanted = "names" if self._from == "name" else "addresses (InternalIP)"
        nodes = _some(self._names) or "none"
        pattern = f", with the nodePattern {self._pattern.pattern}" if self._pattern else ""
        return (
            f"no series belongs to a node: the label {self._label} is {_some(values)}{pattern}, and the "
            f"{wanted} of nodes are {nodes}; check nodeLabel, nodeFrom and nodePattern"
        )


def without_port(label: str) -> str:
    """Return the label without a port: `10.0.0.1:9100` is `10.0.0.1`, `[fd00::1]:9100` is `fd00::1`."""
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
