"""The pods of a gang start together: each keeps its room on a node and waits for the others."""

from longshore.framework import Wait


class Gang:
    """Holds pods with the label `gang` until `gang-size` of them have a node."""

    name = "Gang"

    def __init__(self, args, handle):
        self.seconds = float(args.get("seconds", 60))
        self.handle = handle

    def permit(self, state, pod, node):
        gang = pod.labels.get("gang")
        if gang is None:
            return None
        # The cluster contains this pod and the waiting ones: they count on the nodes chosen for them.
        members = [p for p in self.handle.cluster.pods() if p.metadata.labels.get("gang") == gang]
        if len(members) < int(pod.labels["gang-size"]):
            return Wait(self.seconds)
        for member in members:
            self.handle.allow(member.metadata.uid, self.name)
        return None
