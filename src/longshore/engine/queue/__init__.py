"""The scheduling queue: the pods that need a node, and what decides when each of them is tried.

`scheduling_queue` is the queue as the engine uses it. `backoff` and `unschedulable` hold the pods that are
not active; `cluster_events` and `queueing_hints` say what a change of an object means to them.
"""
