"""Only pods with the label `spot: ok` can run on spot instances."""

from longshore.framework import filter_plugin

REASON = "node(s) were spot instances"


@filter_plugin
def no_spot(pod, node):
    if node.labels.get("lifecycle") == "spot" and pod.labels.get("spot") != "ok":
        return REASON
    return None
