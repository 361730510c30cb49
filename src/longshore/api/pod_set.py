"""Pod sets: the ScheduleTrigger that holds a set, the SchedulePlan by which it is bound, and their names.

A set is the pods of one namespace with the same value of `POD_SET_LABEL`. Kinds, labels, and names are those
of Pallet, so that its manifests and its planners work unchanged; the fields that Longshore adds are optional.
"""

from longshore.api.duration import parse_duration
from longshore.api.meta import ApiObject, ApiStruct
from longshore.api.names import is_dns_subdomain

GROUP = "planner.ciena.io"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"

SCHEDULER_NAME = "podset-planner-scheduler"

POD_SET_LABEL = f"{GROUP}/pod-set"
QUIET_TIME_LABEL = f"{GROUP}/quiet-time"

# A planner is a Service with the labels of the sets that it plans, or with the default label: then it plans
# every set that has no planner of its own.
DEFAULT_PLANNER_LABEL = f"{GROUP}/default"
PLANNER_ENABLED = "enabled"
PLANNER_SERVICE_PORT = 7309

PLANNING = "Planning"
SCHEDULE = "Schedule"

BALANCE = "Balance"
PACK = "Pack"

# In seconds.
DEFAULT_BUDGET = 0.3
MAX_BUDGET = 600.0

# The most entries of `unplaced` that the API server accepts in the status of a plan.
MAX_UNPLACED = 100


class Condition(ApiStruct):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str = ""
    observed_generation: int = 0


class ScheduleTriggerSpec(ApiStruct):
    state: str = ""
    all_or_nothing: bool = False
    objective: str = BALANCE
    budget: str = ""

    @property
    def budget_seconds(self) -> float:
        """The budget in effect. One that the API server would reject is ignored."""
        seconds = parse_duration(self.budget)
        return min(seconds, MAX_BUDGET) if seconds is not None and seconds > 0 else DEFAULT_BUDGET


# A status is written as a merge patch, so it names all its fields: a null removes an old value.
class ScheduleTriggerStatus(ApiStruct, omit_defaults=False):
    """The status of a trigger, with times in RFC 3339, so that a wait continues after a restart.

    `planning_since` is when the wait began that the label text in `quiet_time` asks for.
    """

    held: int = 0
    bound: int = 0
    fire_at: str | None = None
    planning_since: str | None = None
    quiet_time: str | None = None
    budget: str | None = None
    conditions: tuple[Condition, ...] = ()
    observed_generation: int = 0


class ScheduleTrigger(ApiObject):
    spec: ScheduleTriggerSpec = ScheduleTriggerSpec()
    status: ScheduleTriggerStatus = ScheduleTriggerStatus()


class PlanEntry(ApiStruct):
    pod: str
    node: str


class SchedulePlanSpec(ApiStruct, omit_defaults=False):
    """The API server requires the list, even an empty one."""

    plan: tuple[PlanEntry, ...] = ()


class UnplacedPod(ApiStruct):
    pod: str
    reason: str


class SchedulePlanStatus(ApiStruct, omit_defaults=False):
    objective: float | None = None
    bound: float | None = None
    gap: float | None = None
    planner: str | None = None
    seconds: float | None = None
    planned: int = 0
    following: int = 0
    unplaced: tuple[UnplacedPod, ...] = ()
    conditions: tuple[Condition, ...] = ()
    observed_generation: int = 0


class SchedulePlan(ApiObject):
    spec: SchedulePlanSpec = SchedulePlanSpec()
    status: SchedulePlanStatus = SchedulePlanStatus()


def planner_label(podset: str) -> str:
    """Return the label of Services that plan this set; its value must be `PLANNER_ENABLED`."""
    return f"{GROUP}/{podset}"


_FNV_OFFSET = 0x811C9DC5
_FNV_PRIME = 0x01000193
# Hashes have no vowels, so that they spell no words, and no 0, 1, or 3, which are easily misread.
_DIGITS = str.maketrans("0123456789", "456789bcdf")


def plan_name(namespace: str, podset: str) -> str:
    """Return the name of the set's plan, which is in the namespace of the set: the set's name and a hash.

    If the set's name is a valid label value but not a valid object name (`My_Set`), the closest valid name is
    used before the hash.
    """
    end = str(_fnv1a(f"{namespace}{podset}".encode())).translate(_DIGITS)
    name = f"{podset}-{end}"
    if is_dns_subdomain(name):
        return name
    parts = (part.strip("-") for part in podset.lower().replace("_", "-").split("."))
    start = ".".join(part for part in parts if part)
    return f"{start}-{end}" if start else end


def _fnv1a(content: bytes) -> int:
    """Return the 32-bit FNV-1a hash."""
    found = _FNV_OFFSET
    for byte in content:
        found = (found ^ byte) * _FNV_PRIME & 0xFFFFFFFF
    return found
