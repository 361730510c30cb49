"""Reads where measurements of nodes come from: from `longshore.measurements`, or from a file with its keys.

    provider: prometheus
    address: http://prometheus.monitoring:9090
    nodeLabel: instance
    nodeFrom: internalIP

Measures have the names of `cluster.measures`. `queries` has the Prometheus query for each of them, and under
`cpu/time`, `memory/time` and `congestion/time` the query for the time of the newest sample.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, get_args
from urllib.parse import urlsplit

from longshore.cluster.measures import PERCENTILES
from longshore.config import document
from longshore.config.base import Settings
from longshore.config.fields import Fields, read_mapping
from longshore.config.problems import (
    InvalidConfiguration,
    Report,
    either,
    found,
    quoted,
    suggestion,
)

ProviderName = Literal["annotations", "prometheus", "metrics-server", "load-watcher"]
NodeFrom = Literal["name", "internalIP"]

MEASURES = (
    *(
        f"{resource}/{of}"
        for resource in ("cpu", "memory")
        for of in ("mean", "std", "forecast", *PERCENTILES)
    ),
    "congestion",
)
TIMES = ("cpu/time", "memory/time", "congestion/time")

_PROVIDERS: tuple[ProviderName, ...] = get_args(ProviderName)
_NODE_FROM: tuple[NodeFrom, ...] = get_args(NodeFrom)
# The fields that only some providers use. With other providers they are an error, since they have no effect.
_HTTP: tuple[ProviderName, ...] = ("prometheus", "load-watcher")
_ONLY_FOR: dict[str, tuple[ProviderName, ...]] = {
    **dict.fromkeys(("address", "caFile", "tokenFile", "insecureSkipVerify", "headers"), _HTTP),
    **dict.fromkeys(("queries", "nodeLabel", "nodeFrom", "nodePattern"), ("prometheus",)),
    "window": ("prometheus", "metrics-server"),
}
_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_HEADER = re.compile(r"[-!#$%&'*+.^_`|~0-9A-Za-z]+")


class MeasurementSettings(Settings):
    """Settings of measurements. Durations are in seconds."""

    provider: ProviderName = "annotations"
    address: str = ""
    # The time between two queries to the provider.
    interval: float = 30.0
    # Older values are ignored.
    max_age: float = 300.0
    # The time after which a new pod is fully contained in the measurements, usually the window of the means.
    settle: float = 900.0
    # The time over which metrics-server and the default queries compute means, deviations and percentiles.
    window: float = 900.0
    # Prometheus queries by measure, which replace the defaults. An empty query leaves the measure out.
    queries: Mapping[str, str] = {}
    # The label that identifies the node, and what it contains: the node's name or its address.
    node_label: str = "instance"
    node_from: NodeFrom = "name"
    # A regular expression with one group, which matches the part of the label that identifies the node.
    node_pattern: str = ""
    ca_file: str = ""
    token_file: str = ""
    insecure_skip_verify: bool = False
    headers: Mapping[str, str] = {}


def load_measurements(path: str | Path) -> MeasurementSettings:
    """Read the settings from a separate file. Raise InvalidConfiguration with all problems in one line."""
    report = Report()
    content = document.read(document.text(path), str(path), report, needs="at least a provider")
    if not isinstance(content, dict):
        raise InvalidConfiguration(str(path), [f"must be a mapping of settings, found {found(content)}"])
    settings = read_mapping(content, "", report, read_measurements)
    if report.problems:
        raise InvalidConfiguration(str(path), ["; ".join(report.problems)])
    return settings


def read_measurements(fields: Fields) -> MeasurementSettings:
    provider = fields.choice("provider", _PROVIDERS) or "annotations"
    for name, providers in _ONLY_FOR.items():
        if provider not in providers and fields.given(name):
            fields.problem(name, f"is only for {either(providers)}, not for {provider}; remove it")
    window = _positive(fields, "window", 900.0)
    settings = MeasurementSettings(
        provider=provider,
        address=_address(fields, needed=provider in _HTTP),
        interval=_positive(fields, "interval", 30.0),
        max_age=_positive(fields, "maxAge", 300.0),
        settle=fields.duration("settle", window),
        window=window,
        queries=_queries(fields),
        node_label=fields.text("nodeLabel", "instance"),
        node_from=fields.choice("nodeFrom", _NODE_FROM) or "name",
        node_pattern=_pattern(fields),
        ca_file=fields.text("caFile"),
        token_file=fields.text("tokenFile"),
        insecure_skip_verify=fields.flag("insecureSkipVerify"),
        headers=_headers(fields),
    )
    if settings.settle < 0:
        fields.problem("settle", "must not be negative")
    if settings.max_age <= settings.interval:
        fields.problem("maxAge", f"must be greater than interval, {settings.interval:g}s")
    if not _LABEL.fullmatch(settings.node_label):
        fields.problem("nodeLabel", f"must be the name of a label, found {quoted(settings.node_label)}")
    if settings.insecure_skip_verify and settings.ca_file:
        fields.problem("insecureSkipVerify", "not allowed together with caFile; remove one of them")
    return settings


def _positive(fields: Fields, name: str, default: float) -> float:
    seconds = fields.duration(name, default)
    if seconds > 0:
        return seconds
    fields.problem(name, "must be greater than 0s")
    return default


def _address(fields: Fields, *, needed: bool) -> str:
    wanted = "the address of the provider, http://HOST:PORT or https://HOST:PORT"
    address = fields.needed_text("address", wanted) if needed else fields.text("address")
    if not address:
        return ""
    try:
        parts = urlsplit(address)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # the port is not a number, or a bracket is missing
        usable = False
    if not usable or parts.query or parts.fragment:
        fields.problem("address", f"must be {wanted}, found {quoted(address)}")
    return address.rstrip("/")


def _queries(fields: Fields) -> dict[str, str]:
    queries: dict[str, str] = {}
    for name, query in fields.mapping("queries").items():
        if name not in (*MEASURES, *TIMES):
            near = (
                suggestion(name, (*MEASURES, *TIMES))
                or f"; the measures are {', '.join((*MEASURES, *TIMES))}"
            )
            fields.problem("queries", f"there is no measure {quoted(name)}{near}")
        elif not isinstance(query, str | None):
            fields.problem("queries", f"the query of {name} must be a text, found {found(query)}")
        else:
            queries[name] = (query or "").strip()
    return queries


def _pattern(fields: Fields) -> str:
    pattern = fields.text("nodePattern")
    try:
        groups = re.compile(pattern).groups
    except (re.error, RecursionError, OverflowError) as error:
        fields.problem("nodePattern", f"must be a regular expression: {error}")
        return ""
    if pattern and groups != 1:
        fields.problem("nodePattern", f"must have one group (…) that identifies the node, found {groups}")
    return pattern


def _headers(fields: Fields) -> dict[str, str]:
    headers: dict[str, str] = {}
    for name, value in fields.mapping("headers").items():
        if not _HEADER.fullmatch(name):
            fields.problem("headers", f"{quoted(name)} is not a valid name of a header")
        elif not isinstance(value, str) or not (value.isprintable() and value.isascii()):
            fields.problem("headers", f"{name} must be a text of printable ASCII, found {found(value)}")
        elif name.lower() == "authorization" and fields.given("tokenFile"):
            fields.problem("headers", "tokenFile already sets Authorization; keep one of them")
        else:
            headers[name] = value
    return headers
