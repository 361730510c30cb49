"""What Prometheus is asked: for each measure how much is used, and when that was last seen.

The answer to an instant query bears the time of the question, however old the samples are that it was made
of. So the time of the newest sample is asked for as well, by `timestamp()`, which is that of a sample as long
as its argument is a plain selector. `queries` may say it better for a resource, under `cpu/time` and so on.

Deviations are of what is used at a time, so rates come first: the deviation of a counter only tells how long
it has been counting.
"""

from dataclasses import dataclass

from longshore.config import MEASURES, MeasurementSettings

# Modes in which no pod runs: a processor that waits for a disk, or for its hypervisor, is not used.
_UNUSED = "idle|iowait|steal"
# With 15 minutes, rates over 2 minutes every 30 seconds: of two samples if they are a minute apart.
_RATES_IN_WINDOW = 7.5
_STEPS_IN_RATE = 4


@dataclass(frozen=True)
class Query:
    """`time` is the query for the time of the values, in seconds since 1970."""

    measure: str
    value: str
    time: str


def queries(settings: MeasurementSettings) -> tuple[Query, ...]:
    """Of each measure that is asked for."""
    given = settings.queries
    defaults = _defaults(settings)
    asked = []
    for measure in MEASURES:
        value = given.get(measure, defaults.get(measure, ""))
        if not value:
            continue
        time_of_resource = f"{measure.partition('/')[0]}/time"
        time = given.get(time_of_resource) or (
            f"timestamp({value})" if measure in given else defaults[time_of_resource]
        )
        asked.append(Query(measure, value, time))
    return tuple(asked)


def _defaults(settings: MeasurementSettings) -> dict[str, str]:
    """For node_exporter. Of several series of one node, as of two jobs that scrape it, the largest counts."""
    rate = settings.window / _RATES_IN_WINDOW
    over = f"[{_duration(settings.window)}:{_duration(rate / _STEPS_IN_RATE)}]"
    node = settings.node_label
    used = {
        "cpu": "sum without (cpu, mode) "
        f'(rate(node_cpu_seconds_total{{mode!~"{_UNUSED}"}}[{_duration(rate)}])) * 1000',
        "memory": "node_memory_MemTotal_bytes - node_memory_MemAvailable_bytes",
    }
    seen = {"cpu": 'node_cpu_seconds_total{mode="idle"}', "memory": "node_memory_MemAvailable_bytes"}
    made = {}
    for resource, amount in used.items():
        made[f"{resource}/mean"] = f"max by ({node}) (avg_over_time(({amount}){over}))"
        made[f"{resource}/std"] = f"max by ({node}) (stddev_over_time(({amount}){over}))"
        # Without a sample in the last minutes, the steps of the window tell when the last one was.
        newest = f"timestamp({seen[resource]})"
        made[f"{resource}/time"] = f"max by ({node}) ({newest} or max_over_time({newest}{over}))"
    return made


def _duration(seconds: float) -> str:
    """As PromQL writes it; whole milliseconds, and at least one."""
    milliseconds = max(1, round(seconds * 1000))
    return f"{milliseconds // 1000}s" if milliseconds % 1000 == 0 else f"{milliseconds}ms"
