"""The decision about one pod: which nodes are feasible, how they score, and which one is chosen."""
