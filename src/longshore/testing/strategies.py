"""Hypothesis strategies for pods and nodes, with little room: pods shall get in each other's way."""

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
    """What one container asks for: any of cpu, memory and a device, or nothing at all."""
    return draw(st.fixed_dictionaries({}, optional={"cpu": _CPU, "memory": _MEMORY, _GPU: st.just("1")}))


@st.composite
def pods(draw: st.DrawFn, *, name: str | None = None) -> PodBuilder:
    """A pending pod: some with more containers, sidecars, overhead or requests as a whole."""
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
    """A node with little room; some have none of a resource."""
    built = node(draw(st.sampled_from(["n1", "n2", "n3"])) if name is None else name)
    built = built.allocatable(cpu=draw(_NODE_CPU), memory=draw(_NODE_MEMORY))
    built = built.allocatable(pods=draw(st.sampled_from(["0", "1", "2", "5", "110"])))
    return built.allocatable(**{_GPU: "2"}) if draw(st.booleans()) else built
