"""The cluster has a few licences: a pod with the label `licence` takes one when it gets a node."""

from longshore.framework import Action, Resource, Status, WakeOn

REASON = "no licence is left"


class Licences:
    name = "Licences"
    # A pod that is gone gives its licence back.
    wakes_on = (WakeOn(Resource.ASSIGNED_POD, Action.DELETE),)

    def __init__(self, args, handle):
        self.number = int(args.get("licences", 2))
        self.handle = handle
        self.holders = set()

    def reserve(self, state, pod, node):
        if "licence" not in pod.labels:
            return None
        self.holders &= {other.metadata.uid for other in self.handle.cluster.pods()}
        if len(self.holders) >= self.number:
            return Status.unschedulable(REASON)
        self.holders.add(pod.pod.metadata.uid)
        return None

    def unreserve(self, state, pod, node):
        # Also called if `reserve` was not, so it must not mind.
        self.holders.discard(pod.pod.metadata.uid)
