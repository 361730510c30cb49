"""Prometheus metrics of a running scheduler, named as in kube-scheduler where the meaning is the same."""
