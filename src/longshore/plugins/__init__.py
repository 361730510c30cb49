"""kube-scheduler's plugins, one module or package each, with the same names and the same messages.

`DEFAULT_PLUGINS` has a factory for each of them:

    fit = DEFAULT_PLUGINS["NodeResourcesFit"](profile.args.get("NodeResourcesFit"), handle)

The arguments are the types of `longshore.config`. Without arguments, a plugin has kube-scheduler's defaults.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from longshore.framework import Factory, Handle, Plugin
from longshore.plugins.defaultbinder import DefaultBinder
from longshore.plugins.defaultpreemption import DefaultPreemption
from longshore.plugins.dynamicresources import DynamicResources
from longshore.plugins.imagelocality import ImageLocality
from longshore.plugins.interpodaffinity.plugin import InterPodAffinity
from longshore.plugins.nodeaffinity import NodeAffinity
from longshore.plugins.nodedeclaredfeatures import NodeDeclaredFeatures
from longshore.plugins.nodename import NodeName
from longshore.plugins.nodeports import NodePorts
from longshore.plugins.noderesources.balanced_allocation import NodeResourcesBalancedAllocation
from longshore.plugins.noderesources.fit import NodeResourcesFit
from longshore.plugins.nodeunschedulable import NodeUnschedulable
from longshore.plugins.nodevolumelimits.plugin import NodeVolumeLimits
from longshore.plugins.podtopologyspread.plugin import PodTopologySpread
from longshore.plugins.prioritysort import PrioritySort
from longshore.plugins.schedulinggates import SchedulingGates
from longshore.plugins.tainttoleration import TaintToleration
from longshore.plugins.volumebinding.plugin import VolumeBinding
from longshore.plugins.volumerestrictions import VolumeRestrictions
from longshore.plugins.volumezone import VolumeZone


def _plain(plugin: Callable[[], Plugin]) -> Factory:
    """Return a factory for a plugin without parameters."""

    def make(args: Any, handle: Handle) -> Plugin:
        return plugin()

    return make


def _with_arguments(plugin: Callable[..., Plugin]) -> Factory:
    """Return a factory for a plugin whose parameters are the fields of its arguments."""

    def make(args: Any, handle: Handle) -> Plugin:
        return plugin() if args is None else plugin(**msgspec.structs.asdict(args))

    return make


def _with_handle(plugin: Callable[..., Plugin]) -> Factory:
    """Return a factory for a plugin that also gets the handle of the engine."""

    def make(args: Any, handle: Handle) -> Plugin:
        return plugin(handle=handle, **({} if args is None else msgspec.structs.asdict(args)))

    return make


# In the order in which kube-scheduler calls them.
DEFAULT_PLUGINS: Mapping[str, Factory] = {
    "SchedulingGates": _plain(SchedulingGates),
    "PrioritySort": _plain(PrioritySort),
    "NodeUnschedulable": _plain(NodeUnschedulable),
    "NodeName": _plain(NodeName),
    "TaintToleration": _plain(TaintToleration),
    "NodeAffinity": _with_arguments(NodeAffinity),
    "NodePorts": _plain(NodePorts),
    "NodeResourcesFit": _with_arguments(NodeResourcesFit),
    "VolumeRestrictions": _plain(VolumeRestrictions),
    "NodeVolumeLimits": _plain(NodeVolumeLimits),
    "VolumeBinding": _with_handle(VolumeBinding),
    "VolumeZone": _plain(VolumeZone),
    "PodTopologySpread": _with_arguments(PodTopologySpread),
    "InterPodAffinity": _with_arguments(InterPodAffinity),
    "DynamicResources": _plain(DynamicResources),
    "DefaultPreemption": _with_handle(DefaultPreemption),
    "NodeResourcesBalancedAllocation": _with_arguments(NodeResourcesBalancedAllocation),
    "ImageLocality": _plain(ImageLocality),
    "DefaultBinder": _plain(DefaultBinder),
    "NodeDeclaredFeatures": _plain(NodeDeclaredFeatures),
}

__all__ = [
    "DEFAULT_PLUGINS",
    "DefaultBinder",
    "DynamicResources",
    "Factory",
    "ImageLocality",
    "NodeAffinity",
    "NodeDeclaredFeatures",
    "NodeName",
    "NodePorts",
    "NodeResourcesBalancedAllocation",
    "NodeResourcesFit",
    "NodeUnschedulable",
    "PrioritySort",
    "SchedulingGates",
    "TaintToleration",
]
