"""Resolves which plugins are called at each point, in which order and with which weight.

The rules are those of kube-scheduler:

- The default MultiPoint set and the set in the file are merged. A default plugin that the file lists again
  keeps its place and gets the weight in the file. Other plugins follow.
- Every plugin of the merged set is enabled at the extension points that it implements, except where the point
  disables it, or all with `*`.
- At each point, the order is: plugins of the set that the point lists too, in the order of its list; the rest
  of the set; plugins that only the point lists.
- The weight in the list of a point replaces the weight of the set, even if the list gives no weight.
"""

from collections.abc import Mapping

import msgspec

from longshore.config.plugins import (
    KUBE_SCHEDULER_PLUGINS,
    MULTI_POINT,
    PluginPoints,
)
from longshore.config.values import EnabledPlugin
from longshore.framework.extension_points import POINTS

ALL = "*"


class PluginSet(msgspec.Struct, frozen=True):
    """The settings of one extension point: weights by name in the order of the file, or 0 for none."""

    enabled: Mapping[str, int] = {}
    disabled: frozenset[str] = frozenset()


_UNTOUCHED = PluginSet()


def resolve(
    sets: Mapping[str, PluginSet], implements: Mapping[str, PluginPoints]
) -> dict[str, tuple[EnabledPlugin, ...]]:
    """Return the plugins of each point. `implements` must have all names in the sets."""
    everywhere = _merged(sets.get(MULTI_POINT, _UNTOUCHED))
    return {point: _at(point, sets.get(point, _UNTOUCHED), everywhere, implements) for point in POINTS}


def _merged(own: PluginSet) -> dict[str, int]:
    kept = {
        name: own.enabled.get(name, plugin.weight)
        for name, plugin in KUBE_SCHEDULER_PLUGINS.items()
        if plugin.default and ALL not in own.disabled and name not in own.disabled
    }
    # A name that is already in the mapping keeps its place.
    return kept | dict(own.enabled)


def _at(
    point: str, own: PluginSet, everywhere: Mapping[str, int], implements: Mapping[str, PluginPoints]
) -> tuple[EnabledPlugin, ...]:
    expanded = [
        name
        for name in everywhere
        if point in implements[name] and ALL not in own.disabled and name not in own.disabled
    ]
    order = [
        *(name for name in own.enabled if name in expanded),
        *(name for name in expanded if name not in own.enabled),
        *(name for name in own.enabled if name not in expanded),
    ]
    weights = {**everywhere, **own.enabled}
    return tuple(EnabledPlugin(name, (weights[name] or 1) if point == "score" else 0) for name in order)
