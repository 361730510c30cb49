"""NodeResourcesFit and NodeResourcesBalancedAllocation, the plugins for the resources of nodes.

The first one checks that a pod's requests fit on a node, and scores nodes by how much of them is used. The
second one prefers nodes on which the pod improves the balance between resources. Both share the arithmetic in
`scoring`.
"""
