"""Agents as an HTTP extender of a stock kube-scheduler, from its requests to the answers of plugins."""
