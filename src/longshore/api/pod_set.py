"""Pod sets: the trigger that holds one, the plan it is bound by, and the names that both go by.

A set is the pods of one namespace with the same value of `POD_SET_LABEL`. Kinds, labels and names are those
of Pallet, so that its manifests and its planners serve unchanged; what we add to the kinds is optional.
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

# A planner is a Service with the label of the sets it plans, or with that of all sets nobody else plans.
DEFAULT_PLANNER_LABEL = f"{GROUP}/default"
PLANNER_ENABLED = "enabled"
PLANNER_PORT = 7777
PLANNER_SERVICE_PORT = 7309

PLANNING = "Planning"
SCHEDULE = "Schedule"

BALANCE = "Balance"
PACK = "Pack"

# In seconds.
DEFAULT_BUDGET = 0.3
MAX_BUDGET = 600.0

# The API server takes no more of them in the status of a plan.
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
        """The budget in force; one that the API server would not take counts as none."""
        seconds = parse_duration(self.budget)
        return min(seconds, MAX_BUDGET) if seconds is not None and seconds > 0 else DEFAULT_BUDGET


# Statuses are merged into what is there, so they name all their fields: a null takes an old value away.
class ScheduleTriggerStatus(ApiStruct, omit_defaults=False):
    """Times are RFC 3339. `planning_since` is about the label text `quiet_time`: it outlives a restart."""

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
    """The API server wants the list even if it is empty."""

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
    """The label by which a Service plans this set, if its value is `PLANNER_ENABLED`."""
    return f"{GROUP}/{podset}"


_FNV_OFFSET = 0x811C9DC5
_FNV_PRIME = 0x01000193
# Without vowels no hash spells a word, and without 0, 1 and 3 it is not misread.
_DIGITS = str.maketrans("0123456789", "456789bcdf")


def plan_name(namespace: str, podset: str) -> str:
    """The name of the set's plan, in the namespace of the set: its own name and a hash.

    Label values may hold what names may not (`My_Set`): then the nearest legal name stands before the hash.
    """
    end = str(_fnv1a(f"{namespace}{podset}".encode())).translate(_DIGITS)
    name = f"{podset}-{end}"
    if is_dns_subdomain(name):
        return name
    parts = (part.strip("-") for part in podset.lower().replace("_", "-").split("."))
    start = ".".join(part for part in parts if part)
    return f"{start}-{end}" if start else end


def _fnv1a(content: bytes) -> int:
    """The 32 bit hash of Fowler, Noll and Vo, variant 1a."""
    found = _FNV_OFFSET
    for byte in content:
        found = (found ^ byte) * _FNV_PRIME & 0xFFFFFFFF
    return found
