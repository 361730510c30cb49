"""Which plugins are called at each point, in which order and with which weight.

kube-scheduler's rules. First the default MultiPoint set and the file's are merged: a default plugin that the
file lists again keeps its place and takes the file's weight, further ones follow. Then every plugin of that
set goes to the points it implements. What a point lists itself comes on top: plugins of the set first, in the
point's own order; then the rest of the set; then plugins that only the point lists. `*` among the disabled of
a point keeps the set away from it, and the weight in a point's list, given or not, replaces that of the set.
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
    """What the file says at one point. Weights by name, in the order of the file; 0: none is given."""

    enabled: Mapping[str, int] = {}
    disabled: frozenset[str] = frozenset()


_UNTOUCHED = PluginSet()


def resolve(
    sets: Mapping[str, PluginSet], implements: Mapping[str, PluginPoints]
) -> dict[str, tuple[EnabledPlugin, ...]]:
    """The plugins of each point. All names in the sets must be among those in `implements`."""
    everywhere = _merged(sets.get(MULTI_POINT, _UNTOUCHED))
    return {point: _at(point, sets.get(point, _UNTOUCHED), everywhere, implements) for point in POINTS}


def _merged(own: PluginSet) -> dict[str, int]:
    kept = {
        name: own.enabled.get(name, plugin.weight)
        for name, plugin in KUBE_SCHEDULER_PLUGINS.items()
        if plugin.default and ALL not in own.disabled and name not in own.disabled
    }
    # A name that is there already keeps its place.
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
