"""Hypothesis strategies for pods and nodes. Nodes have little room, so that pods compete for it."""

from typing import Any

from hypothesis import strategies as st

from longshore.testing.nodes import NodeBuilder, node
from longshore.testing.pods import PodBuilder, pod

_GPU = "example.com/gpu"
_CPU = st.sampled_from(["0", "50m", "100m", "250m", "0.5", "1", "1500m"])
_MEMORY = st.sampled_from(["0", "64Mi", "100M", "256Mi", "0.5Gi", "1Gi", "1G"])
_NODE_CPU = st.sampled_from(["0", "500m", "1", "2", "3900m"])
_NODE_MEMORY = st.sampled_from(["0", "512Mi", "1Gi", "2Gi", "4G"])


@st.composite
def requests(draw: st.DrawFn) -> dict[str, str]:
    """The requests of one container: any of cpu, memory, and a device, or nothing at all."""
    return draw(st.fixed_dictionaries({}, optional={"cpu": _CPU, "memory": _MEMORY, _GPU: st.just("1")}))


@st.composite
def pods(draw: st.DrawFn, *, name: str | None = None) -> PodBuilder:
    """Pending pods: some have more containers, sidecars, overhead, or pod-level requests."""
    built = pod(draw(st.sampled_from("abcdefgh")) if name is None else name).requests(**draw(requests()))
    for number in range(draw(st.integers(0, 3))):
        kind = draw(st.sampled_from([built.container, built.init_container, built.sidecar]))
        built = kind(f"more-{number}", **draw(requests()))
    if draw(st.booleans()):
        built = built.priority(draw(st.integers(-2, 2)))
    if draw(st.booleans()):
        built = built.overhead(cpu="10m", memory="1Mi")
    if draw(st.booleans()):
        whole = st.fixed_dictionaries({}, optional={"cpu": _CPU, "memory": _MEMORY})
        built = built.pod_requests(**draw(whole))
    return built


@st.composite
def nodes(draw: st.DrawFn, *, name: str | None = None) -> NodeBuilder:
    """Nodes with little room: some lack a resource."""
    built = node(draw(st.sampled_from(["n1", "n2", "n3"])) if name is None else name)
    built = built.allocatable(cpu=draw(_NODE_CPU), memory=draw(_NODE_MEMORY))
    built = built.allocatable(pods=draw(st.sampled_from(["0", "1", "2", "5", "110"])))
    return built.allocatable(**{_GPU: "2"}) if draw(st.booleans()) else built


LABELS = {"app": ("web", "db"), "tier": ("front", "back")}
ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
ZONES = ("east", "west", "north")
TAINTS = ("dedicated", "spot")
PORTS = (80, 443)
IMAGES = ("registry.example.com/web:1", "registry.example.com/db:2")
_TOPOLOGY = st.sampled_from([ZONE, HOSTNAME])


@st.composite
def labels(draw: st.DrawFn) -> dict[str, Any]:
    """The labels of a pod or of a selector: any of a few labels, or none."""
    values = {key: st.sampled_from(values) for key, values in LABELS.items()}
    return draw(st.fixed_dictionaries({}, optional=values))


@st.composite
def choosy_pods(draw: st.DrawFn, *, name: str | None = None) -> PodBuilder:
    """Pods with constraints: tolerations, node labels, host ports, topology spread, or inter-pod affinity."""
    built = draw(pods(name=name)).labels(**draw(labels()))
    for _ in range(draw(st.integers(0, 3))):
        built = draw(_demand(built))
    return built


@st.composite
def _demand(draw: st.DrawFn, built: PodBuilder) -> PodBuilder:
    weight = st.integers(1, 100)
    match draw(st.integers(0, 8)):
        case 0:
            effects = st.sampled_from(["", "NoSchedule", "NoExecute", "PreferNoSchedule"])
            return built.tolerate(draw(st.sampled_from(["", *TAINTS])), effect=draw(effects))
        case 1:
            return built.node_selector(**{ZONE: draw(st.sampled_from(ZONES))})
        case 2:
            zones = draw(st.lists(st.sampled_from(ZONES), min_size=1, unique=True))
            operator = draw(st.sampled_from(["In", "NotIn"]))
            return built.node_affinity(ZONE, operator, *zones, preferred=draw(st.none() | weight))
        case 3:
            return built.node_affinity("disk", draw(st.sampled_from(["Exists", "DoesNotExist"])))
        case 4:
            port, address = draw(st.sampled_from(PORTS)), draw(st.sampled_from(["", "10.0.0.1"]))
            return built.host_port(port, ip=address, protocol=draw(st.sampled_from(["TCP", "UDP"])))
        case 5 | 6:
            return built.spread(
                draw(_TOPOLOGY),
                max_skew=draw(st.integers(1, 3)),
                hard=draw(st.booleans()),
                **draw(labels()),
            )
        case 7:
            return built.affinity_to(draw(_TOPOLOGY), preferred=draw(st.none() | weight), **draw(labels()))
        case _:
            return built.anti_affinity_to(
                draw(_TOPOLOGY), preferred=draw(st.none() | weight), **draw(labels())
            )


@st.composite
def varied_nodes(draw: st.DrawFn, *, name: str | None = None) -> NodeBuilder:
    """Nodes with little room: some are in a zone, tainted, or cordoned, or have images."""
    built = draw(nodes(name=name))
    for key, values in ((ZONE, ZONES), ("disk", ("ssd",))):
        value = draw(st.none() | st.sampled_from(values))
        if value is not None:
            built = built.labels(**{key: value})
    for key in draw(st.lists(st.sampled_from(TAINTS), max_size=2, unique=True)):
        effect = draw(st.sampled_from(["NoSchedule", "NoExecute", "PreferNoSchedule"]))
        built = built.taint(key, effect=effect)
    for image in draw(st.lists(st.sampled_from(IMAGES), max_size=2, unique=True)):
        built = built.image(image, size=draw(st.integers(0, 3)) * 300 * 2**20)
    return built.unschedulable() if draw(st.integers(0, 5)) == 0 else built
