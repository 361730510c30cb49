"""The table of kube-scheduler's plugins: their names, extension points, default order and default weights.

A configuration file is checked against it, and no plugin is imported for that. The table is that of
kube-scheduler 1.36.3, and contains plugins that Longshore does not have.
"""

from collections.abc import Mapping, Set

import msgspec

PluginPoints = Set[str]

MULTI_POINT = "multiPoint"
# Extension points of an alpha feature, the scheduling of pod groups. A file may name them, without effect.
PLACEMENT_POINTS = ("placementGenerate", "placementScore")


class KubeSchedulerPlugin(msgspec.Struct, frozen=True):
    """A plugin of kube-scheduler. With the weight 0 the default set has none, and a Score counts once."""

    points: PluginPoints
    weight: int = 0
    # Whether the plugin is part of the default set. If not, a file has to enable it.
    default: bool = True
    # Whether everything that a file says about the plugin has no effect in Longshore yet.
    inert: bool = False

    @property
    def absent(self) -> bool:
        """Whether Longshore lacks the plugin. Then it is left out of profiles that enable it."""
        return self.inert and not self.default


def _plugin(
    points: str, weight: int = 0, *, default: bool = True, inert: bool = False
) -> KubeSchedulerPlugin:
    return KubeSchedulerPlugin(frozenset(points.split()), weight, default, inert)


# The order is that of the default MultiPoint set.
KUBE_SCHEDULER_PLUGINS: Mapping[str, KubeSchedulerPlugin] = {
    "SchedulingGates": _plugin("preEnqueue"),
    "PrioritySort": _plugin("queueSort"),
    "NodeUnschedulable": _plugin("filter"),
    "NodeName": _plugin("filter"),
    "TaintToleration": _plugin("filter preScore score", 3),
    "NodeAffinity": _plugin("preFilter filter preScore score", 2),
    "NodePorts": _plugin("preFilter filter"),
    "NodeResourcesFit": _plugin("preFilter filter preScore score placementScore", 1),
    "VolumeRestrictions": _plugin("preFilter filter"),
    "NodeVolumeLimits": _plugin("preFilter filter"),
    "VolumeBinding": _plugin("preFilter filter preScore score reserve preBind"),
    "VolumeZone": _plugin("preFilter filter"),
    "PodTopologySpread": _plugin("preFilter filter preScore score", 2),
    "InterPodAffinity": _plugin("preFilter filter preScore score", 2),
    # Longshore's plugin of this name rejects pods with resource claims, so it stays in the profiles.
    "DynamicResources": _plugin(
        "preEnqueue preFilter filter postFilter score reserve preBind", 2, inert=True
    ),
    "DefaultPreemption": _plugin("preEnqueue postFilter"),
    "NodeResourcesBalancedAllocation": _plugin("preScore score", 1),
    "ImageLocality": _plugin("score", 1),
    "DefaultBinder": _plugin("bind"),
    "NodeDeclaredFeatures": _plugin("preFilter filter"),
    "GangScheduling": _plugin("preEnqueue permit", default=False, inert=True),
    "TopologyPlacementGenerator": _plugin("placementGenerate", default=False, inert=True),
    "PodGroupPodsCount": _plugin("placementScore", 1, default=False, inert=True),
}

# Extension points at which existing files enable a plugin that does nothing there in Longshore. The plugin of
# this name in Pallet scores nodes.
IDLE_POINTS: Mapping[str, PluginPoints] = {"PodSetPlanner": frozenset({"preScore", "score"})}

# Plugins of older versions, and what replaced them.
REMOVED_PLUGINS: Mapping[str, str] = {
    "AzureDiskLimits": "NodeVolumeLimits",
    "CinderLimits": "NodeVolumeLimits",
    "EBSLimits": "NodeVolumeLimits",
    "GCEPDLimits": "NodeVolumeLimits",
    "NodeResourcesLeastAllocated": "the scoringStrategy of NodeResourcesFit",
    "NodeResourcesMostAllocated": "the scoringStrategy of NodeResourcesFit",
    "RequestedToCapacityRatio": "the scoringStrategy of NodeResourcesFit",
    "SelectorSpread": "PodTopologySpread",
}
