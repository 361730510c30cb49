"""The queue: which pods wait, which events wake them, and in which order they are tried."""

import re
import time
from collections import Counter
from collections.abc import Callable

import pytest
from msgspec.structs import replace
from tests.compare.sides import Counts, KubeScheduler, Longshore
from tests.compare.two_schedulers import SIDES, Arena, Side

from longshore.testing import NodeBuilder, PodBuilder, node, pod

# Counters of attempts that end with a bind are written after the bind.
_COUNTED_WITHIN = 5.0
# After one failed attempt. Both schedulers read the clock in whole seconds.
_BACKOFF = 2.1

_LABEL = re.compile(r'(\w+)="([^"]*)"')

Reported = dict[tuple[str, ...], int]


def sized(name: str, cpu: str = "4") -> NodeBuilder:
    return node(name).allocatable(cpu=cpu, memory="8Gi")


def tried(arena: Arena, act: Callable[[], None]) -> tuple[Reported, Reported]:
    """Return how often each scheduler tried pods, and which events moved them to the queue."""
    schedulers: tuple[KubeScheduler | Longshore, ...] = (arena.kube, arena.longshore)
    before = [scheduler.metrics() for scheduler in schedulers]
    act()
    arena.until_queues_are_worked_off()
    deadline = time.monotonic() + _COUNTED_WITHIN
    while True:
        theirs, ours = (
            reported(each.side, each.metrics() - was) for each, was in zip(schedulers, before, strict=True)
        )
        if theirs == ours or time.monotonic() > deadline:
            return theirs, ours


def reported(side: str, counts: Counts) -> Reported:
    """Backoff is not distinguished, because a scheduler with an empty queue does not wait for its end."""
    found: Counter[tuple[str, ...]] = Counter()
    for (name, labels), number in counts.items():
        said = dict(_LABEL.findall(labels))
        if name == "scheduler_schedule_attempts_total":
            found["tried", said["profile"].removeprefix(f"{side}-"), said["result"]] += number
        elif name == "scheduler_queue_incoming_pods_total" and said["event"] != "PopFromBackoffQ":
            place = "active" if said["queue"] == "backoff" else said["queue"]
            found["queued", said["event"], place] += number
    return dict(found)


def for_both(built: PodBuilder) -> list[PodBuilder]:
    """Return the same pod for each of the two schedulers."""

    def of(side: Side) -> PodBuilder:
        named = replace(built, metadata=replace(built.metadata, name=f"{built.metadata.name}-{side}"))
        return (named.host_port(_PORTS[side]) if built is _PORT else named).scheduler(f"{side}-default")

    return [of(side) for side in SIDES]


def test_a_gated_pod_is_not_tried_until_its_gates_are_gone(arena: Arena) -> None:
    arena.become(sized("n1"))
    gated = for_both(pod("gated").gates("example.com/first", "example.com/second"))

    def keep(*gates: str) -> None:
        for each in gated:
            arena.api.patch(each, {"spec": {"schedulingGates": [{"name": name} for name in gates] or None}})

    for act in (lambda: arena.add(*gated), lambda: keep("example.com/second"), keep):
        theirs, ours = tried(arena, act)
        assert ours == theirs
    assert ours[("tried", "default", "scheduled")] == 1
    for each in gated:
        found = arena.api.get(each)
        assert found["spec"]["nodeName"] == "n1"
        assert [event["reason"] for event in arena.api.events(found["metadata"]["uid"])] == ["Scheduled"]


def test_pods_are_tried_by_priority_and_then_by_age(arena: Arena) -> None:
    """Four pods wait while nothing fits. Then a node is added, with room for some of them."""
    waiting = [
        pod(name).requests(cpu="1").priority(p) for name, p in zip("abcd", (1, 10, 1, 10), strict=True)
    ]

    def ask(side: Side, cpu: str) -> set[str]:
        arena.become(sized("full", "500m"))
        pods = [each.scheduler(f"{side}-default") for each in waiting]
        arena.add(*pods)
        arena.until_refused(*pods)
        time.sleep(_BACKOFF)
        arena.add(sized("new", cpu))
        arena.until(lambda: len(placed(arena, waiting)) >= int(cpu), "the room is used")
        return placed(arena, waiting)

    for cpu, first in (("1", {"b"}), ("3", {"a", "b", "d"})):
        assert ask("kube", cpu) == ask("longshore", cpu) == first


def placed(arena: Arena, pods: list[PodBuilder]) -> set[str]:
    return {each.metadata.name for each in pods if "nodeName" in arena.api.get(each)["spec"]}


# Two of them fit after one of the events.
_WAITS_FOR_ROOM = pod("waits").requests(cpu="1")
_THERE = pod("there").requests(cpu="2").on("n1")
_SMALL = pod("small").requests(cpu="1500m").on("n1")


def _relabel(arena: Arena) -> None:
    arena.api.patch(sized("n1"), {"metadata": {"labels": {"disk": "ssd"}}})


def _relabel_otherwise(arena: Arena) -> None:
    arena.api.patch(sized("n1"), {"metadata": {"labels": {"disk": "hdd"}}})


def _grow(arena: Arena) -> None:
    arena.api.patch(sized("n1"), {"status": {"allocatable": {"cpu": "8"}}}, subresource="status")


def _grow_elsewhere(arena: Arena) -> None:
    arena.api.patch(sized("n1"), {"status": {"allocatable": {"memory": "9Gi"}}}, subresource="status")


def _end(arena: Arena) -> None:
    arena.remove(_THERE)


def _end_small(arena: Arena) -> None:
    arena.remove(_SMALL)


def _shrink(arena: Arena) -> None:
    asks = {"name": "main", "resources": {"requests": {"cpu": "500m"}}}
    arena.api.patch(_THERE, {"spec": {"containers": [asks]}}, subresource="resize", patch="strategic-merge")


def _new_node(arena: Arena) -> None:
    arena.add(sized("n2"))


def _new_small_node(arena: Arena) -> None:
    arena.add(sized("n2", cpu="500m"))


def _new_tainted_node(arena: Arena) -> None:
    arena.add(sized("n2").taint("t"))


def _taint(arena: Arena) -> None:
    arena.api.patch(sized("n1"), {"spec": {"taints": [{"key": "t", "effect": "NoSchedule"}]}})


def _new_pod(arena: Arena) -> None:
    arena.add(pod("another").labels(app="db").on("n1"))


def _new_friend(arena: Arena) -> None:
    arena.add(pod("friend").labels(app="web").on("n1"))


def _become_a_friend(arena: Arena) -> None:
    arena.api.patch(_THERE, {"metadata": {"labels": {"app": "web"}}})


def _relabel_themselves(arena: Arena) -> None:
    for each in for_both(_WAITS_FOR_ROOM):
        arena.api.patch(each, {"metadata": {"labels": {"app": "db"}}})


_PICKY = pod("waits").node_affinity("disk", "In", "ssd")
_SOCIABLE = pod("waits").affinity_to("kubernetes.io/hostname", app="web")
_HERMIT = pod("waits").anti_affinity_to("kubernetes.io/hostname", app="there")
# A different port for each scheduler, or the pod that is bound first would block the other.
_PORT = pod("waits").labels(wants="port")
_PORTS = {"kube": 80, "longshore": 81}

_HAPPENS: list[tuple[PodBuilder, Callable[[Arena], None]]] = [
    *((_WAITS_FOR_ROOM, each) for each in (_relabel, _grow, _grow_elsewhere, _end, _end_small, _shrink)),
    *((_WAITS_FOR_ROOM, each) for each in (_new_node, _new_small_node, _new_tainted_node, _taint)),
    *((_WAITS_FOR_ROOM, each) for each in (_new_pod, _relabel_themselves)),
    *((_PICKY, each) for each in (_relabel, _relabel_otherwise, _grow, _end, _new_node)),
    *((_SOCIABLE, each) for each in (_new_friend, _new_pod, _become_a_friend, _grow, _end)),
    *((_HERMIT, each) for each in (_end, _end_small, _relabel)),
    *((_PORT, each) for each in (_end, _end_small, _new_node, _grow)),
]


@pytest.mark.parametrize(("waits", "happens"), _HAPPENS)
def test_a_pending_pod_is_tried_again_after_the_same_events(
    arena: Arena, waits: PodBuilder, happens: Callable[[Arena], None]
) -> None:
    arena.become(sized("n1"), _THERE.labels(app="there"), _SMALL.host_port(80).host_port(81))
    pods = for_both(waits)
    arena.add(*pods)
    arena.until_refused(*pods)
    theirs, ours = tried(arena, lambda: happens(arena))
    assert ours == theirs
    assert len(placed(arena, pods)) in (0, 2)
