"""Measurements from Prometheus, or a server with the same API: one instant query for each measure.

If a query fails, only its measure is missing. A value that is not an amount (NaN, infinite or negative) is
left out and counted. A value above the capacity is kept, because agents limit utilization.
"""

import asyncio
import math
from collections.abc import Mapping, Sequence

import msgspec
import structlog

from longshore.api import Node
from longshore.cluster.measures import Measured
from longshore.config import MeasurementSettings
from longshore.measure.http_provider import HttpClient, one_line
from longshore.measure.node_names import NodeNames
from longshore.measure.promql import Query, queries
from longshore.measure.providers import ProviderFailed, Values

log = structlog.get_logger()


class Series(msgspec.Struct, frozen=True):
    metric: dict[str, str] = {}
    # The time of the query, and the value as text.
    value: tuple[float, str] = (0.0, "NaN")


class _Data(msgspec.Struct, frozen=True, rename="camel"):
    result_type: str = ""
    result: msgspec.Raw = msgspec.Raw(b"[]")


class _Answer(msgspec.Struct, frozen=True):
    status: str = ""
    error: str = ""
    data: _Data = _Data()


class Prometheus:
    """The provider for Prometheus."""

    def __init__(self, settings: MeasurementSettings) -> None:
        self._settings = settings
        self._client = HttpClient(settings)
        self._queries = queries(settings)
        # Measures whose failure has been logged.
        self._failing: set[str] = set()
        # The number of invalid values so far, and whether the last round had any.
        self.dropped = 0
        self._dropping = False

    async def close(self) -> None:
        await self._client.close()

    async def measure(self, nodes: Sequence[Node]) -> Values:
        found = await self._ask_all()
        names = NodeNames(self._settings, nodes)
        dropped = self.dropped
        values = {
            # A measure that failed is present without values, so that an annotator removes the old ones.
            query.measure: self._by_node(found.get(query.value, ()), found.get(query.time, ()), names)
            for query in self._queries
        }
        self._log_dropped(self.dropped - dropped)
        if not any(values.values()):
            raise ProviderFailed(self._nothing(found, names))
        return values

    async def _ask_all(self) -> dict[str, Sequence[Series]]:
        """Return the answers by query. Raises ProviderFailed if all queries fail."""
        asked = dict.fromkeys(promql for query in self._queries for promql in (query.value, query.time))
        answers = await asyncio.gather(*map(self._ask, asked), return_exceptions=True)
        found: dict[str, Sequence[Series]] = {}
        failing: dict[str, ProviderFailed] = {}
        for promql, answer in zip(asked, answers, strict=True):
            if isinstance(answer, ProviderFailed):
                failing[promql] = answer
            elif isinstance(answer, BaseException):
                raise answer
            else:
                found[promql] = answer
        if failing and not found:
            raise next(iter(failing.values()))
        self._log_failing(failing)
        return found

    def _log_failing(self, failing: Mapping[str, ProviderFailed]) -> None:
        """Log a line for each measure that begins to fail."""
        measures = set()
        for query in self._queries:
            reason = failing.get(query.value) or failing.get(query.time)
            if reason is not None:
                measures.add(query.measure)
                if query.measure not in self._failing:
                    log.warning("query failed", reason=f"{query.measure}: {reason}")
        self._failing = measures

    async def _ask(self, promql: str) -> Sequence[Series]:
        status, body = await self._client.get("/api/v1/query", {"query": promql})
        try:
            answer = msgspec.json.decode(body, type=_Answer)
        except (msgspec.DecodeError, UnicodeDecodeError):
            answer = _Answer(error=one_line(body[:1000].decode(errors="replace")))
        if status != 200 or answer.status != "success":
            reason = one_line(answer.error) or "no reason given"
            raise ProviderFailed(f"{self._client.address} answered {status}: {reason}")
        if answer.data.result_type != "vector":
            kind = answer.data.result_type or "nothing"
            raise ProviderFailed(f"the query returned {kind}, but must return an instant vector: {promql}")
        try:
            return msgspec.json.decode(answer.data.result, type=list[Series])
        except msgspec.DecodeError as error:
            raise ProviderFailed(f"{self._client.address} did not answer with a vector: {error}") from error

    def _by_node(
        self, values: Sequence[Series], times: Sequence[Series], names: NodeNames
    ) -> dict[str, Measured]:
        """Return the value of each node. The newest of several values counts, or the largest of those."""
        label = self._settings.node_label
        newest: dict[str, float] = {}
        for series in times:
            time = _number(series.value[1])
            if math.isfinite(time):
                key = series.metric.get(label, "")
                newest[key] = max(time, newest.get(key, time))
        measured: dict[str, Measured] = {}
        for series in values:
            key = series.metric.get(label, "")
            name = names.find(key)
            if name is None:
                continue
            amount = _number(series.value[1])
            # Drop a value of unknown age, which would never expire.
            if not (math.isfinite(amount) and amount >= 0 and key in newest):
                self.dropped += 1
                continue
            before = measured.get(name)
            if before is None or (newest[key], amount) > (before[1], before[0]):
                measured[name] = (amount, newest[key])
        return measured

    def _log_dropped(self, number: int) -> None:
        if number and not self._dropping:
            log.warning("values ignored: not a number, negative, or of unknown age", number=number)
        self._dropping = bool(number)

    def _nothing(self, found: Mapping[str, Sequence[Series]], names: NodeNames) -> str:
        asked = [query for query in self._queries if query.value in found]
        series = [each.metric for query in asked for each in found[query.value]]
        if not series:
            return (
                f"no query returned a series, not even {_first(asked)}: check that node_exporter is scraped, "
                "or set other queries in the setting queries"
            )
        if any(names.find(labels.get(self._settings.node_label, "")) for labels in series):
            return "all values are not numbers, negative, or of unknown age"
        return names.mismatch(series)


def _first(asked: Sequence[Query]) -> str:
    return asked[0].value if asked else "none is set"


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
