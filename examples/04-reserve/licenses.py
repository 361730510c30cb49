"""The cluster has a few licenses: a pod with the label `license` takes one when it gets a node."""

from longshore.framework import Action, Resource, Status, WakeOn

REASON = "no license is left"


class Licenses:
    name = "Licenses"
    # A pod that is gone gives its license back.
    wakes_on = (WakeOn(Resource.ASSIGNED_POD, Action.DELETE),)

    def __init__(self, args, handle):
        self.number = int(args.get("licenses", 2))
        self.handle = handle
        self.holders = set()

    def reserve(self, state, pod, node):
        if "license" not in pod.labels:
            return None
        self.holders &= {other.metadata.uid for other in self.handle.cluster.pods()}
        if len(self.holders) >= self.number:
            return Status.unschedulable(REASON)
        self.holders.add(pod.pod.metadata.uid)
        return None

    def unreserve(self, state, pod, node):
        # Also called if `reserve` was not, so it must not mind.
        self.holders.discard(pod.pod.metadata.uid)
