"""Pods that are pinned to nodes by labels of the nodes, such as databases that must return to their data.

    kubectl label node worker-1 rf.scheduler.static.default/web-0=

With this label, the scheduler `static` puts the pod web-0 of namespace default on worker-1 and nowhere else.
"""
