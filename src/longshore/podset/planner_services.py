"""Planner services: which of them plans a set, and under which address.

A planner is a Service with the label of the set, else one with the label for all sets that have none of their
own. Anyone who may create Services could steer pods this way, so their namespaces can be limited.
"""

from collections.abc import Collection, Mapping
from typing import Literal

import msgspec

from longshore.api import Service
from longshore.api.plan_request import address_of
from longshore.api.pod_set import DEFAULT_PLANNER_LABEL, PLANNER_ENABLED, planner_label

# Seconds that a planner service may take, as in Pallet.
CALL_SECONDS = 15.0


class PlannerSettings(msgspec.Struct, frozen=True, kw_only=True):
    # What happens to pods that no planner service has placed: planned by the built-in planner, or pending.
    fallback: Literal["built-in", "none"] = "built-in"
    # The namespaces of planner services; None: any.
    namespaces: frozenset[str] | None = None
    # Addresses by `namespace/name` of the Service, `*` for any: for clusters without DNS, and for tests.
    addresses: Mapping[str, str] = {}
    call_seconds: float = CALL_SECONDS


class Planner(msgspec.Struct, frozen=True, order=True):
    """`name` is the namespace and name of its Service."""

    name: str
    address: str


def planners_of(podset: str, services: Collection[Service], settings: PlannerSettings) -> list[Planner]:
    """Return the planners of the set itself, or else those for all sets."""
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
    configured = settings.addresses.get(service.key) or settings.addresses.get("*")
    return configured or address_of(service.metadata.name, service.metadata.namespace)
