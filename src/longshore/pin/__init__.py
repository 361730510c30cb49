"""Pods pinned to nodes by labels of the nodes: for databases that have to come back where their data is.

    kubectl label node worker-1 rf.scheduler.static.default/web-0=

The pod web-0 of namespace default, if its scheduler's name is `static`, goes to worker-1 and nowhere else.
"""
