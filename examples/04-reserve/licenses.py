"""The cluster has a limited number of licenses. Each pod with the label `license` needs one."""

from longshore.framework import Action, Resource, Status, WakeOn

REASON = "no license is left"


class Licenses:
    name = "Licenses"
    # A deleted pod returns its license.
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
        # Also called for pods whose `reserve` was never called.
        self.holders.discard(pod.pod.metadata.uid)
