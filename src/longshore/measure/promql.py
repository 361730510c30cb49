"""The queries for Prometheus: for each measure, its value and the time of the newest sample.

The answer to an instant query has the time of the query, no matter how old the samples are. So `timestamp()`
gets the time of the newest sample, which works if its argument is a plain selector. The setting `queries` can
replace the query for the time of a resource, as `cpu/time` and so on.

The deviation of CPU time is that of its rate: the deviation of a counter only says how long it has counted.
"""

from dataclasses import dataclass

from longshore.config import MEASURES, MeasurementSettings

# CPU modes in which no pod runs, because the CPU is idle or waits for a disk or the hypervisor.
_UNUSED = "idle|iowait|steal"
# With a window of 15 minutes: rates over 2 minutes, every 30 seconds. Samples may be a minute apart.
_RATES_IN_WINDOW = 7.5
_STEPS_IN_RATE = 4


@dataclass(frozen=True)
class Query:
    """The queries of a measure: for its values, and for their time in seconds since 1970."""

    measure: str
    value: str
    time: str


def queries(settings: MeasurementSettings) -> tuple[Query, ...]:
    """Return the queries of all measures that the settings ask for."""
    given = settings.queries
    defaults = _defaults(settings)
    found = []
    for measure in MEASURES:
        value = given.get(measure, defaults.get(measure, ""))
        if not value:
            continue
        time_of_resource = f"{measure.partition('/')[0]}/time"
        time = given.get(time_of_resource) or (
            f"timestamp({value})" if measure in given else defaults[time_of_resource]
        )
        found.append(Query(measure, value, time))
    return tuple(found)


def _defaults(settings: MeasurementSettings) -> dict[str, str]:
    """Return queries for node_exporter. The largest of several series of a node counts."""
    rate = settings.window / _RATES_IN_WINDOW
    over = f"[{_duration(settings.window)}:{_duration(rate / _STEPS_IN_RATE)}]"
    node = settings.node_label
    used = {
        "cpu": "sum without (cpu, mode) "
        f'(rate(node_cpu_seconds_total{{mode!~"{_UNUSED}"}}[{_duration(rate)}])) * 1000',
        "memory": "node_memory_MemTotal_bytes - node_memory_MemAvailable_bytes",
    }
    seen = {"cpu": 'node_cpu_seconds_total{mode="idle"}', "memory": "node_memory_MemAvailable_bytes"}
    found = {}
    for resource, amount in used.items():
        found[f"{resource}/mean"] = f"max by ({node}) (avg_over_time(({amount}){over}))"
        found[f"{resource}/std"] = f"max by ({node}) (stddev_over_time(({amount}){over}))"
        # Without a recent sample, the time of the last one is found in the window.
        newest = f"timestamp({seen[resource]})"
        found[f"{resource}/time"] = f"max by ({node}) ({newest} or max_over_time({newest}{over}))"
    return found


def _duration(seconds: float) -> str:
    """Format a duration for PromQL, in whole milliseconds and at least one."""
    milliseconds = max(1, round(seconds * 1000))
    return f"{milliseconds // 1000}s" if milliseconds % 1000 == 0 else f"{milliseconds}ms"
