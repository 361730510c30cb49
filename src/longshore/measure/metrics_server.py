"""Measurements from metrics-server, through the API server.

metrics-server knows only the usage of the last seconds, so samples are kept here for the length of the
window. After a start there are few samples: the deviation is known from the second one.
"""

import math
from collections.abc import Sequence

import msgspec

from longshore.api import InvalidQuantity, Node, milli_value, value
from longshore.api.timestamps import parse_timestamp
from longshore.kube.client import Client
from longshore.kube.errors import ApiError, ConnectionFailed
from longshore.measure.providers import ProviderFailed, Values
from longshore.measure.sliding_window import SlidingWindows

PATH = "/apis/metrics.k8s.io/v1beta1/nodes"
_AMOUNTS = {"cpu": milli_value, "memory": value}


class _Metadata(msgspec.Struct, frozen=True):
    name: str = ""


class _NodeMetrics(msgspec.Struct, frozen=True):
    metadata: _Metadata = _Metadata()
    # The end of the measured interval.
    timestamp: str = ""
    usage: dict[str, str] = {}


class _NodeMetricsList(msgspec.Struct, frozen=True):
    items: tuple[_NodeMetrics, ...] = ()


class MetricsServer:
    """The provider for metrics-server.

    Samples count for `window` seconds, and statistics of them for `max_age` seconds.
    """

    def __init__(self, client: Client, *, window: float, max_age: float) -> None:
        self._client = client
        self._windows = SlidingWindows(window, max_age=max_age)

    async def close(self) -> None:
        """Do nothing: the client belongs to the caller."""

    async def measure(self, nodes: Sequence[Node]) -> Values:
        known = {node.metadata.name for node in nodes}
        self._windows.keep(known)
        for item in await self._items():
            time = parse_timestamp(item.timestamp)
            if item.metadata.name not in known or math.isnan(time):
                continue
            for resource, amount in _amounts(item).items():
                self._windows.add(item.metadata.name, resource, amount, time)
        return self._windows.statistics()

    async def _items(self) -> tuple[_NodeMetrics, ...]:
        try:
            body = await self._client.request("GET", PATH, timeout=10.0)
            return msgspec.json.decode(body, type=_NodeMetricsList).items
        except ApiError as error:
            raise ProviderFailed(_refusal(error)) from error
        except ConnectionFailed as error:
            raise ProviderFailed(f"cannot talk to the API server: {error}") from error
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ProviderFailed(f"{PATH} did not answer with a list of node metrics: {error}") from error


def _refusal(error: ApiError) -> str:
    match error.status:
        case 404:
            return "the cluster does not have the API metrics.k8s.io/v1beta1: install metrics-server"
        case 403:
            return f"permission to list nodes of metrics.k8s.io is missing: {error.message}"
        case 503:
            return f"metrics-server does not answer the API server: {error.message}"
    return f"{PATH}: {error}"


def _amounts(item: _NodeMetrics) -> dict[str, float]:
    """Return the used amounts, without invalid ones."""
    amounts: dict[str, float] = {}
    for resource, read in _AMOUNTS.items():
        try:
            amount = read(item.usage[resource])
        except (KeyError, InvalidQuantity):
            continue
        if amount >= 0:
            amounts[resource] = float(amount)
    return amounts
