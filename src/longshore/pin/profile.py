"""The profile of the static scheduler: only pinned nodes, with the default filters and without preemption.

The only score is for the last node of the pod. Among equal nodes, the first by name is chosen, or a random
one.
"""

import secrets
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from longshore.config import (
    Configuration,
    EnabledPlugin,
    LeaderElection,
    LongshoreSettings,
    default_configuration,
)
from longshore.framework import Factory, Handle
from longshore.pin import plugin, taints
from longshore.pin.plugin import NodePin, NodePinArgs
from longshore.pin.taints import PinnedTaints
from longshore.plugins.tainttoleration import NAME as TAINT_TOLERATION

_VOLUME_PLUGINS = frozenset({"VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone"})
_PIN = EnabledPlugin(plugin.NAME)
_TAINTS = EnabledPlugin(taints.NAME)


class StaticOptions(msgspec.Struct, frozen=True, kw_only=True):
    legacy_labels: bool = True
    respect_taints: bool = False
    # Of several labeled nodes, choose a random one, rather than the last one and then the first by name.
    random: bool = False
    # Whether claims and volumes can be read; if not, they are not checked.
    volumes: bool = True


def static_configuration(scheduler_name: str, options: StaticOptions) -> Configuration:
    default = default_configuration(scheduler_name)
    (profile,) = default.profiles
    points: dict[str, tuple[EnabledPlugin, ...]] = {}
    for point, enabled in profile.points.items():
        points[point] = tuple(each for each in enabled if options.volumes or each.name not in _VOLUME_PLUGINS)
    points["preFilter"] = (_PIN, *points["preFilter"])
    points["filter"] = tuple(_TAINTS if each.name == TAINT_TOLERATION else each for each in points["filter"])
    points["postFilter"] = points["preScore"] = ()
    points["score"] = () if options.random else (EnabledPlugin(plugin.NAME, 1),)
    tie_break = LongshoreSettings(
        tie_break="random" if options.random else "first", seed=secrets.randbits(62) if options.random else 0
    )
    return msgspec.structs.replace(
        default,
        profiles=(msgspec.structs.replace(profile, points=points),),
        leader_election=LeaderElection(leader_elect=False),
        longshore=tie_break,
    )


def static_plugins(options: StaticOptions, *, on_legacy: Callable[[str, str], None]) -> Mapping[str, Factory]:
    """Return the plugins that the configuration uses in addition to the default ones."""

    def node_pin(_args: Any, handle: Handle) -> NodePin:
        return NodePin(NodePinArgs(legacy_labels=options.legacy_labels), handle=handle, on_legacy=on_legacy)

    def pinned_taints(_args: Any, _handle: Handle) -> PinnedTaints:
        return PinnedTaints(respect=options.respect_taints)

    return {plugin.NAME: node_pin, taints.NAME: pinned_taints}
