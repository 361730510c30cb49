"""The static scheduler's metrics: binds by pod and node, and their results.

The labels pod and node create a time series for each pair that is never removed. Without them there are few.
"""

from prometheus_client import CollectorRegistry, Counter, GCCollector, PlatformCollector, ProcessCollector

_EVERYTHING = ("pod", "node", "scheduler", "namespace")
_FEW = ("scheduler", "namespace")


class BindCounts:
    """Counts the binds of the scheduler with this name."""

    def __init__(self, scheduler: str, *, low_cardinality: bool = False) -> None:
        self.registry = CollectorRegistry()
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self.registry)
        self._scheduler = scheduler
        self._labels = _FEW if low_cardinality else _EVERYTHING
        self._requests = self._counter("schedule_request", "Binding requests")
        self._successes = self._counter("schedule_request_success", "Binding successful requests")
        self._failures = self._counter(
            "schedule_request_failure", "Binding failed requests", "http_status", "reason"
        )

    def bound(self, *, namespace: str, pod: str, node: str) -> None:
        labels = self._values(namespace, pod, node)
        self._requests.labels(**labels).inc()
        self._successes.labels(**labels).inc()

    def refused(self, *, namespace: str, pod: str, node: str, http_status: int, reason: str) -> None:
        """Count a failed bind. `http_status` is 0 if there was no answer."""
        labels = self._values(namespace, pod, node)
        self._requests.labels(**labels).inc()
        self._failures.labels(**labels, http_status=str(http_status), reason=reason).inc()

    def _counter(self, name: str, documentation: str, *more: str) -> Counter:
        return Counter(name, documentation, (*self._labels, *more), registry=self.registry)

    def _values(self, namespace: str, pod: str, node: str) -> dict[str, str]:
        known = {"namespace": namespace, "pod": pod, "node": node, "scheduler": self._scheduler}
        return {label: known[label] for label in self._labels}
