"""The pod sets that the caller of a command may see, with their pods, triggers and plans."""

from typing import TypeVar

import msgspec

from longshore.api import Change, Pod, SchedulePlan, ScheduleTrigger, plan_name
from longshore.api.meta import ApiObject
from longshore.api.pod_set import POD_SET_LABEL
from longshore.errors import UserError
from longshore.kube.caller import list_objects
from longshore.kube.client import Client
from longshore.kube.errors import ApiError
from longshore.kube.resources import PODS, SCHEDULE_PLANS, SCHEDULE_TRIGGERS, Resource
from longshore.podset.sets import PodSet, Sets

T = TypeVar("T", bound=ApiObject)

# How many names of existing sets an error lists.
_NAMED = 10


class Found(msgspec.Struct, frozen=True):
    """The objects of one namespace, or of all namespaces."""

    pods: tuple[Pod, ...] = ()
    triggers: tuple[ScheduleTrigger, ...] = ()
    plans: tuple[SchedulePlan, ...] = ()

    @property
    def sets(self) -> Sets:
        return sets_of(self.pods, self.triggers, self.plans)

    def podset(self, namespace: str, name: str) -> PodSet:
        """Return the pod set. Raises UserError if no object belongs to it."""
        sets = self.sets
        podset = sets.get((namespace, name))
        if podset is not None:
            return podset
        # A plan without the label, written before any other object of the set exists.
        wanted = (namespace, plan_name(namespace, name))
        for plan in self.plans:
            if (plan.metadata.namespace, plan.metadata.name) == wanted:
                podset = PodSet(namespace, name)
                podset.plan = plan
                return podset
        others = some(sorted(each.name for each in sets if each.namespace == namespace))
        there = f"it has {others}" if others else "it has no pod sets; -n chooses another namespace"
        raise UserError(f"there is no pod set {name} in namespace {namespace}: {there}")


async def read(client: Client, *, namespace: str = "") -> Found:
    """Read the objects of all namespaces, unless one is given. Raises UserError."""
    return Found(
        tuple((await list_objects(client, PODS, namespace=namespace)).values()),
        await list_custom(client, SCHEDULE_TRIGGERS, namespace=namespace),
        await list_custom(client, SCHEDULE_PLANS, namespace=namespace),
    )


async def list_custom(client: Client, resource: Resource[T], *, namespace: str = "") -> tuple[T, ...]:
    """Return triggers or plans. Raises UserError, also if the cluster has no such kind."""
    try:
        return tuple((await list_objects(client, resource, namespace=namespace)).values())
    except UserError as error:
        if isinstance(error.__cause__, ApiError) and error.__cause__.status == 404:
            raise UserError(
                f"the cluster does not know {resource}: install them with kubectl apply -f deploy/crds"
            ) from error
        raise


def sets_of(*objects: tuple[ApiObject, ...]) -> Sets:
    sets = Sets()
    for group in objects:
        for each in group:
            sets.changed(Change(None, each))
    return sets


def set_name(labeled: ApiObject) -> str:
    """Return the set that the object's label names, or an empty string without the label."""
    return labeled.metadata.labels.get(POD_SET_LABEL, "")


def some(names: list[str]) -> str:
    """Return the names, or the first of them if there are many."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
