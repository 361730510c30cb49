"""Planner services: which of them plans a set, and under which address.

A planner is a Service with the label of the set, else one with the label of all sets that have none of their
own. Anybody who may create Services could steer pods this way, so their namespaces can be limited.
"""

from collections.abc import Collection, Mapping
from typing import Literal

import msgspec

from longshore.api import Service
from longshore.api.plan_request import address_of
from longshore.api.pod_set import DEFAULT_PLANNER_LABEL, PLANNER_ENABLED, planner_label

# As long as Pallet waits for an answer.
CALL_SECONDS = 15.0


class PlannerSettings(msgspec.Struct, frozen=True, kw_only=True):
    # What becomes of pods that no planner service has placed: planned here, or left pending.
    fallback: Literal["built-in", "none"] = "built-in"
    # Where planner services may be; None: anywhere.
    namespaces: frozenset[str] | None = None
    # Addresses by `namespace/name` of the Service, `*` for any: for clusters without DNS, and for tests.
    addresses: Mapping[str, str] = {}
    call_seconds: float = CALL_SECONDS


class Planner(msgspec.Struct, frozen=True, order=True):
    """`name` is the namespace and name of its Service."""

    name: str
    address: str


def planners_of(podset: str, services: Collection[Service], settings: PlannerSettings) -> list[Planner]:
    """Those of the set itself, or else those for all sets; none if there is neither."""
    for label in (planner_label(podset), DEFAULT_PLANNER_LABEL):
        found = [
            Planner(service.key, _address(service, settings))
            for service in services
            if service.metadata.labels.get(label) == PLANNER_ENABLED
            and (settings.namespaces is None or service.metadata.namespace in settings.namespaces)
        ]
        if found:
            return sorted(found)
    return []


def _address(service: Service, settings: PlannerSettings) -> str:
    told = settings.addresses.get(service.key) or settings.addresses.get("*")
    return told or address_of(service.metadata.name, service.metadata.namespace)
