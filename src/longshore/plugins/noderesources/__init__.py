"""Resources of nodes: whether a pod fits, and how its requests balance the node."""
