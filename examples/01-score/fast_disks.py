"""Pods with the label `disk: fast` prefer nodes with fast disks."""

from longshore.framework import MAX_SCORE, score_plugin


@score_plugin(weight=5)
def fast_disks(pod, node):
    if pod.labels.get("disk") != "fast":
        return 0
    return MAX_SCORE if node.labels.get("disk") == "ssd" else 0
