"""One decision: which node a pod goes to, or why none fits. It has no side effects on the cluster.

`chooser` decides with an `attempt`, which takes most answers from the pod's shape (`shapes`). `diagnosis`
says why nodes were refused. All calls of filters and scores go through `plugin_calls`.
"""
