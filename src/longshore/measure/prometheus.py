"""Measurements from Prometheus, or from what answers like it: instant queries, one for each measure.

A query that fails costs its measure, not the others. What is no amount (NaN, infinite, negative) is left out
and counted; what is only astonishing is kept, since agents hold utilisation within its bounds.
"""

import asyncio
import math
from collections.abc import Mapping, Sequence

import msgspec
import structlog

from longshore.api import Node
from longshore.cluster.measures import Measured
from longshore.config import MeasurementSettings
from longshore.measure.http_provider import WebProvider, one_line
from longshore.measure.node_names import NodeNames
from longshore.measure.promql import Query, queries
from longshore.measure.providers import ProviderFailed, Values

log = structlog.get_logger()


class Series(msgspec.Struct, frozen=True):
    metric: dict[str, str] = {}
    # Time of the question and value as text.
    value: tuple[float, str] = (0.0, "NaN")


class _Data(msgspec.Struct, frozen=True, rename="camel"):
    result_type: str = ""
    result: msgspec.Raw = msgspec.Raw(b"[]")


class _Answer(msgspec.Struct, frozen=True):
    status: str = ""
    error: str = ""
    data: _Data = _Data()


class Prometheus:
    def __init__(self, settings: MeasurementSettings) -> None:
        self._settings = settings
        self._web = WebProvider(settings)
        self._queries = queries(settings)
        # Measures that the log has been told to fail.
        self._failing: set[str] = set()
        # Values that were no amounts, so far, and whether there were any in the last round.
        self.dropped = 0
        self._dropping = False

    async def close(self) -> None:
        await self._web.close()

    async def measure(self, nodes: Sequence[Node]) -> Values:
        found = await self._ask_all()
        names = NodeNames(self._settings, nodes)
        dropped = self.dropped
        values = {
            # One that failed has no values, but is ours: whoever writes them down takes the old ones away.
            query.measure: self._by_node(found.get(query.value, ()), found.get(query.time, ()), names)
            for query in self._queries
        }
        self._tell_dropped(self.dropped - dropped)
        if not any(values.values()):
            raise ProviderFailed(self._nothing(found, names))
        return values

    async def _ask_all(self) -> dict[str, Sequence[Series]]:
        """The answers by query. Raises ProviderFailed if there are none at all."""
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
        self._tell_failing(failing)
        return found

    def _tell_failing(self, failing: Mapping[str, ProviderFailed]) -> None:
        """A line for each measure that begins to fail."""
        measures = set()
        for query in self._queries:
            reason = failing.get(query.value) or failing.get(query.time)
            if reason is not None:
                measures.add(query.measure)
                if query.measure not in self._failing:
                    log.warning("a query fails", reason=f"{query.measure}: {reason}")
        self._failing = measures

    async def _ask(self, promql: str) -> Sequence[Series]:
        status, body = await self._web.get("/api/v1/query", {"query": promql})
        try:
            answer = msgspec.json.decode(body, type=_Answer)
        except (msgspec.DecodeError, UnicodeDecodeError):
            answer = _Answer(error=one_line(body[:1000].decode(errors="replace")))
        if status != 200 or answer.status != "success":
            reason = one_line(answer.error) or "no reason given"
            raise ProviderFailed(f"{self._web.address} answers {status}: {reason}")
        if answer.data.result_type != "vector":
            kind = answer.data.result_type or "nothing"
            raise ProviderFailed(f"the query gives {kind}, but must give an instant vector: {promql}")
        try:
            return msgspec.json.decode(answer.data.result, type=list[Series])
        except msgspec.DecodeError as error:
            raise ProviderFailed(f"{self._web.address} answers what is no vector: {error}") from error

    def _by_node(
        self, values: Sequence[Series], times: Sequence[Series], names: NodeNames
    ) -> dict[str, Measured]:
        """Of several values for one node the newest counts, and the largest of those."""
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
            # A value of unknown age would never be too old.
            if not (math.isfinite(amount) and amount >= 0 and key in newest):
                self.dropped += 1
                continue
            before = measured.get(name)
            if before is None or (newest[key], amount) > (before[1], before[0]):
                measured[name] = (amount, newest[key])
        return measured

    def _tell_dropped(self, number: int) -> None:
        if number and not self._dropping:
            log.warning("values left out: not a number, negative, or of unknown age", number=number)
        self._dropping = bool(number)

    def _nothing(self, found: Mapping[str, Sequence[Series]], names: NodeNames) -> str:
        asked = [query for query in self._queries if query.value in found]
        series = [each.metric for query in asked for each in found[query.value]]
        if not series:
            return (
                f"no query finds anything, not even {_first(asked)}: is node_exporter scraped? "
                "What to ask instead can be said in queries"
            )
        if any(names.find(labels.get(self._settings.node_label, "")) for labels in series):
            return "all values are no numbers, negative, or of unknown age"
        return names.mismatch(series)


def _first(asked: Sequence[Query]) -> str:
    return asked[0].value if asked else "none is set"


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
