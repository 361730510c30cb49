"""kube-scheduler's plugins as the configuration file knows them: names, points, default order and weights.

This is the table of kube-scheduler 1.36.3, not of what Longshore has: the file is checked against it without
importing any plugin.
"""

from collections.abc import Mapping, Set

import msgspec

PluginPoints = Set[str]

MULTI_POINT = "multiPoint"
# Part of the alpha scheduling of whole pod groups; the file may name them, nothing is called there yet.
PLACEMENT_POINTS = ("placementGenerate", "placementScore")


class KubeSchedulerPlugin(msgspec.Struct, frozen=True):
    """A plugin of kube-scheduler. Weight 0: the default set gives none, which counts as 1 where it scores."""

    points: PluginPoints
    weight: int = 0
    # Belongs to the default set; else a file has to enable it.
    default: bool = True
    # What the file says about it has no effect in Longshore yet.
    inert: bool = False

    @property
    def absent(self) -> bool:
        """Longshore has no such plugin: it is left out of the profiles, also where the file enables it."""
        return self.inert and not self.default


def _plugin(
    points: str, weight: int = 0, *, default: bool = True, inert: bool = False
) -> KubeSchedulerPlugin:
    return KubeSchedulerPlugin(frozenset(points.split()), weight, default, inert)


# In the order of the default MultiPoint set.
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
    # Longshore's turns away the pods that claim resources, so it stays in the profiles.
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

# Where files of others have a plugin of ours that has nothing to do there: Pallet's gives scores.
IDLE_POINTS: Mapping[str, PluginPoints] = {"PodSetPlanner": frozenset({"preScore", "score"})}

# Plugins that older versions had, and what took their place.
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
