"""A pod with the label `rack` can only run on the nodes of that rack."""


class Racks:
    name = "Racks"

    def __init__(self, args):
        self.nodes = args.get("racks", {})

    def pre_filter(self, state, pod, cluster):
        rack = pod.labels.get("rack")
        return None if rack is None else self.nodes.get(rack, [])
