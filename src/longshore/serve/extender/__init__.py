"""The HTTP extender: answers the filter and prioritize calls of a stock kube-scheduler with our agents."""
