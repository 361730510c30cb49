"""A gang starts together or not at all: its pods wait for each other, each holding its place."""

from longshore.framework import Wait


class Gang:
    """Pods with the label `gang` wait until as many of them as `gang-size` says have a node."""

    name = "Gang"

    def __init__(self, args, handle):
        self.seconds = float(args.get("seconds", 60))
        self.handle = handle

    def permit(self, state, pod, node):
        gang = pod.labels.get("gang")
        if gang is None:
            return None
        # All pods that have a node, or are to get one: this pod, and those that wait, are among them.
        members = [p for p in self.handle.cluster.pods() if p.metadata.labels.get("gang") == gang]
        if len(members) < int(pod.labels["gang-size"]):
            return Wait(self.seconds)
        for member in members:
            self.handle.allow(member.metadata.uid, self.name)
        return None
