"""A pod with its requests, computed once.

Requests are counted as kube-scheduler counts them. Containers run together with all sidecars; init containers
run one after the other, each with the sidecars that were started before it. The pod needs the larger of the
two. Pod-level requests replace those of the containers, and the overhead of the runtime class is added.

Requests can change while a pod runs. Until the node has applied a resize, the pod counts with the maximum of
what it requests, what the node has allocated, and what is in effect there. A resize that is infeasible does
not count.
"""

from collections.abc import Mapping

import msgspec

from longshore.api import Container, ContainerStatus, InvalidQuantity, Pod, PodCondition, PodStatus
from longshore.api.kept import kept_conditions
from longshore.cluster.resources import column_amount, counted, thousandths

# What a container without a request for cpu or memory is assumed to use when nodes are scored, in
# thousandths.
_ASSUMED_USE = {"cpu": 100, "memory": 200 * 2**20 * 1000}

_Amounts = dict[str, int]


class PodInfo(msgspec.Struct, frozen=True):
    """A pod with what scheduling has computed about it. Plugins get this rather than the pod itself."""

    pod: Pod
    # Amounts by resource, in the unit of its column. Amounts of 0 are left out; `pods` is always 1.
    requests: dict[str, int]
    # cpu and memory as scoring counts them once the pod is on a node.
    nonzero: tuple[int, int]
    # cpu and memory as scoring counts them while the pod has no node: there, kube-scheduler 1.36 does not
    # look at pod-level requests.
    nonzero_incoming: tuple[int, int]
    # Why the requests are invalid; such a pod is not scheduled. Always empty for a pod from an API server.
    problem: str = ""

    @property
    def labels(self) -> dict[str, str]:
        return self.pod.metadata.labels

    @property
    def annotations(self) -> dict[str, str]:
        """The annotations of the pod. Plugins have to declare in `reads` which of them they read."""
        return self.pod.metadata.annotations

    def condition(self, kind: str) -> PodCondition | None:
        """Return the condition of this type, if the pod has it. Plugins have to declare it in `reads`."""
        return self.pod.status.condition(kind)

    def about(self, pod: Pod) -> "PodInfo":
        """Return the same requests for another version of the pod, or another pod, with an equal spec."""
        return PodInfo(pod, self.requests, self.nonzero, self.nonzero_incoming, self.problem)

    @classmethod
    def of(cls, pod: Pod) -> "PodInfo":
        """Compute the requests of the pod. An invalid quantity counts as 0 and is reported in `problem`."""
        problems: list[str] = []
        spec, status = pod.spec, pod.status
        reported = {s.name: s for s in (*status.container_statuses, *status.init_container_statuses)}
        containers = [
            _in_effect(c, _asked("containers", c, problems), reported, status, problems)
            for c in spec.containers
        ]
        init = [
            (True, _in_effect(c, _asked("initContainers", c, problems), reported, status, problems))
            if c.restart_policy == "Always"
            else (False, _asked("initContainers", c, problems))
            for c in spec.init_containers
        ]
        overhead = _amounts("spec.overhead", spec.overhead, problems)
        whole = _whole_pod(pod, problems)

        total = _together(containers, init, {})
        requests = _sum(total | whole, overhead)
        # A pod with pod-level requests for a resource is assumed to use no more of it than that.
        missing = {r: use for r, use in _ASSUMED_USE.items() if r not in requests} if whole else _ASSUMED_USE
        with_use = _sum(_together(containers, init, missing) | whole, overhead)
        incoming = _sum(_together(containers, init, _ASSUMED_USE), overhead) if whole else with_use
        return cls(
            pod,
            {"pods": 1} | {r: column_amount(r, a) for r, a in requests.items() if a > 0 and r != "pods"},
            _cpu_and_memory(with_use),
            _cpu_and_memory(incoming),
            "; ".join(problems),
        )


def asks_alike(a: Pod, b: Pod) -> bool:
    """Whether all fields from which requests are computed are equal, so that they can be reused."""
    mine, yours = a.spec, b.spec
    return (
        mine.containers == yours.containers
        and mine.init_containers == yours.init_containers
        and mine.overhead == yours.overhead
        and mine.resources == yours.resources
        and _granted(a) == _granted(b)
    )


def _granted(pod: Pod) -> tuple[object, ...]:
    """Return what the node reports about a resize. Conditions matter only together with the other fields."""
    status = pod.status
    granted = (
        status.container_statuses,
        status.init_container_statuses,
        status.resources,
        status.allocated_resources,
    )
    return (*granted, status.conditions) if any(granted) else ()


def _asked(field: str, container: Container, problems: list[str]) -> _Amounts:
    where = f"spec.{field}[{container.name}].resources.requests"
    return _amounts(where, container.resources.requests, problems)


def _amounts(where: str, quantities: Mapping[str, str], problems: list[str]) -> _Amounts:
    amounts = {}
    for resource, text in quantities.items():
        if not counted(resource):
            continue
        try:
            amounts[resource] = thousandths(text)
        except InvalidQuantity as error:
            problems.append(f"{where}.{resource}: {error}")
    return amounts


def _in_effect(
    container: Container,
    asked: _Amounts,
    reported: Mapping[str, ContainerStatus],
    pod_status: PodStatus,
    problems: list[str],
) -> _Amounts:
    status = reported.get(container.name)
    if status is None or status.resources is None:
        return asked
    actual, granted = status.resources.requests, status.allocated_resources
    if actual == container.resources.requests and (not granted or granted == actual):
        return asked
    where = f"status of container {container.name}"
    return _while_resized(
        asked,
        _amounts(f"{where}: resources.requests", actual, problems),
        _amounts(f"{where}: allocatedResources", granted, problems),
        pod_status,
    )


def _whole_pod(pod: Pod, problems: list[str]) -> _Amounts:
    resources, status = pod.spec.resources, pod.status
    if resources is None:
        return {}
    amounts = _amounts("spec.resources.requests", resources.requests, problems)
    asked = {r: a for r, a in amounts.items() if r in ("cpu", "memory") or r.startswith("hugepages-")}
    if not asked or status.resources is None:
        return asked
    counted_now = _while_resized(
        asked,
        _amounts("status.resources.requests", status.resources.requests, problems),
        _amounts("status.allocatedResources", status.allocated_resources, problems),
        status,
    )
    return {resource: counted_now.get(resource, 0) for resource in asked}


def _while_resized(asked: _Amounts, actual: _Amounts, granted: _Amounts, status: PodStatus) -> _Amounts:
    held = _most(actual, granted)
    infeasible = any(
        each.type == "PodResizePending" and each.reason == "Infeasible"
        for each in kept_conditions(status.conditions)
    )
    return held if infeasible else _most(asked, held)


def _together(containers: list[_Amounts], init: list[tuple[bool, _Amounts]], missing: _Amounts) -> _Amounts:
    """Return the most in use at one time. `missing` has the defaults of containers without a request."""
    running: _Amounts = {}
    for amounts in containers:
        running = _sum(running, missing | amounts)
    sidecars: _Amounts = {}
    peak: _Amounts = {}
    for is_sidecar, amounts in init:
        starting = _sum(sidecars, missing | amounts)
        if is_sidecar:
            running = _sum(running, missing | amounts)
            sidecars = starting
        peak = _most(peak, starting)
    return _most(running, peak)


def _sum(a: _Amounts, b: _Amounts) -> _Amounts:
    if not a or not b:
        return a or b
    return a | {resource: a.get(resource, 0) + amount for resource, amount in b.items()}


def _most(a: _Amounts, b: _Amounts) -> _Amounts:
    if not b:
        return a
    return a | {resource: max(a.get(resource, 0), amount) for resource, amount in b.items()}


def _cpu_and_memory(amounts: _Amounts) -> tuple[int, int]:
    return column_amount("cpu", amounts.get("cpu", 0)), column_amount("memory", amounts.get("memory", 0))
