"""Measurements from load-watcher. Its JSON has percentages of capacity, for one or more windows.

The longest window counts, and the mean takes precedence over the latest value. If load-watcher has only the
latest value, as with metrics-server, there is no deviation.
"""

import math
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from longshore.api import InvalidQuantity, Node, milli_value, parse_duration, value
from longshore.config import MeasurementSettings
from longshore.measure.http_provider import HttpClient, one_line
from longshore.measure.providers import ProviderFailed, Values

PATH = "/watcher"
# The measure and rank of an operator. The latest value, or one without an operator, can replace the mean.
_MEANS = {"avg": ("mean", 1), "latest": ("mean", 0), "": ("mean", 0), "std": ("std", 1)}


class _Metric(msgspec.Struct, frozen=True):
    type: str = ""
    operator: str = ""
    rollup: str = ""
    value: float = math.nan


class _NodeMetrics(msgspec.Struct, frozen=True):
    metrics: tuple[_Metric, ...] | None = ()


class _Data(msgspec.Struct, frozen=True):
    nodes: dict[str, _NodeMetrics] | None = msgspec.field(name="NodeMetricsMap", default=None)


class _Window(msgspec.Struct, frozen=True):
    end: float = 0.0


class _WatcherMetrics(msgspec.Struct, frozen=True):
    timestamp: float = 0.0
    window: _Window = _Window()
    data: _Data = _Data()

    @property
    def time(self) -> float:
        """The end of the window if it is known, else the time of the answer."""
        return self.window.end if self.window.end > 0 else self.timestamp


class LoadWatcher:
    """The provider for load-watcher."""

    def __init__(self, settings: MeasurementSettings) -> None:
        self._client = HttpClient(settings)

    async def close(self) -> None:
        await self._client.close()

    async def measure(self, nodes: Sequence[Node]) -> Values:
        status, body = await self._client.get(PATH)
        where = f"{self._client.address}{PATH}"
        if status != 200:
            reason = one_line(body[:1000].decode(errors="replace")) or "no reason given"
            raise ProviderFailed(f"{where} answered {status}: {reason}")
        try:
            answer = msgspec.json.decode(body, type=_WatcherMetrics)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ProviderFailed(f"{where} did not answer with load-watcher's JSON: {error}") from error
        if answer.time <= 0:
            raise ProviderFailed(
                f"{where} did not report when it measured: timestamp and window.end are missing"
            )
        measured = answer.data.nodes or {}
        found: dict[str, dict[str, tuple[float, float]]] = {}
        for node in nodes:
            metrics = measured.get(node.metadata.name, _NodeMetrics()).metrics or ()
            for measure, percent in _percentages(metrics).items():
                capacity = _capacity(node, measure.partition("/")[0])
                if capacity is not None:
                    amount = capacity * percent / 100
                    found.setdefault(measure, {})[node.metadata.name] = (amount, answer.time)
        if not found and measured:
            raise ProviderFailed(
                f"{where} knows nodes such as {next(iter(measured))}, but no node of this cluster"
            )
        return found


def _percentages(metrics: Iterable[_Metric]) -> Mapping[str, float]:
    """Return the percentage of each measure."""
    best: dict[str, tuple[int, float, float]] = {}
    for metric in metrics:
        resource, (of, rank) = metric.type.lower(), _MEANS.get(metric.operator.lower(), ("", 0))
        if (
            resource not in ("cpu", "memory")
            or not of
            or not (math.isfinite(metric.value) and metric.value >= 0)
        ):
            continue
        found = (rank, parse_duration(metric.rollup) or 0.0, metric.value)
        measure = f"{resource}/{of}"
        best[measure] = max(found, best.get(measure, found))
    return {measure: percent for measure, (_, _, percent) in best.items()}


def _capacity(node: Node, resource: str) -> int | None:
    text = node.status.capacity.get(resource)
    try:
        return None if text is None else (milli_value(text) if resource == "cpu" else value(text))
    except InvalidQuantity:
        return None
