"""Random clusters and pods, with everything that the default plugins look at."""

from random import Random

from longshore.api.meta import ApiObject
from longshore.testing import NodeBuilder, PodBuilder, node, pod, service

ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
GPU = "example.com/gpu"
_ZONES = ("east", "north", "south", "west")
_APPS = ("cache", "db", "queue", "web")
_TAINTS = ("dedicated", "maintenance", "spot")
_EFFECTS = ("NoSchedule", "NoExecute", "PreferNoSchedule", "PreferNoSchedule")
# The same size on all nodes, because kube-scheduler uses the size on the first node for all.
_IMAGES = {
    "registry.example.com/web:1": 90,
    "registry.example.com/db:2": 400,
    "docker.io/library/cache:latest": 1200,
}
_PORTS = (80, 443, 9100)
_CPU = ("", "50m", "100m", "250m", "700m", "1", "1300m", "2")
_MEMORY = ("", "64Mi", "100M", "300Mi", "1Gi", "1500M", "3Gi")
_NAMESPACES = ("default", "default", "other", "third")
_PRIORITIES = (None, None, 1, 10, 100)
_MIB = 1 << 20


def cluster(random: Random, *, nodes: int, pods: int) -> list[ApiObject]:
    """Return nodes, pods on them, and services that select some of the pods."""
    things: list[ApiObject] = [random_node(random, f"node-{number:04d}") for number in range(nodes)]
    # The first node is plain, so that a pod without constraints always fits somewhere.
    things[0] = node("node-0000").allocatable(cpu="8", memory="16Gi").labels(**{ZONE: "east"})
    things += [service("web", app="web"), service("db", namespace="other", app="db")]
    for number in range(pods):
        chosen = random.randrange(nodes)
        built = random_pod(random, f"pod-{number:05d}", demands=random.choice((0, 0, 1, 2)))
        things.append(built.on(f"node-{chosen:04d}"))
    return things


def random_node(random: Random, name: str) -> NodeBuilder:
    built = node(name).allocatable(
        cpu=random.choice(("2", "4", "7900m", "8", "16")),
        memory=random.choice(("4Gi", "8G", "16Gi", "31Gi")),
        pods=random.choice(("3", "8", "110", "110")),
    )
    if random.random() < 0.9:
        built = built.labels(**{ZONE: random.choice(_ZONES)})
    if random.random() < 0.5:
        built = built.labels(disk=random.choice(("hdd", "ssd")), generation=str(random.randint(1, 5)))
    if random.random() < 0.4:
        built = built.allocatable(**{GPU: random.choice(("1", "2", "4"))})
    for key in random.sample(_TAINTS, random.choice((0, 0, 0, 1, 2))):
        built = built.taint(key, random.choice(("", "yes")), effect=random.choice(_EFFECTS))
    for image in random.sample(list(_IMAGES), random.choice((0, 0, 1, 2))):
        built = built.image(image, size=_IMAGES[image] * _MIB)
    return built.unschedulable() if random.random() < 0.06 else built


def random_pod(random: Random, name: str, *, demands: int) -> PodBuilder:
    """Return a pod with this many required and preferred constraints."""
    built = pod(name, namespace=random.choice(_NAMESPACES)).requests(**_requests(random))
    built = built.labels(app=random.choice(_APPS)).image(random.choice((*_IMAGES, "none")))
    match random.randrange(8):
        case 0:
            built = built.sidecar("side", **_requests(random)).init_container("init", **_requests(random))
        case 1:
            built = built.container("second", **_requests(random)).init_container("init", **_requests(random))
        case 2:
            built = built.pod_requests(cpu="3", memory="4Gi")
    if (priority := random.choice(_PRIORITIES)) is not None:
        built = built.priority(priority)
    # Preemption would change the cluster between the two decisions. It is compared elsewhere.
    built = built.never_preempting() if built.spec.priority else built
    for _ in range(demands):
        built = _one_more(random, built)
    return built


def _requests(random: Random) -> dict[str, str]:
    asked = {"cpu": random.choice(_CPU), "memory": random.choice(_MEMORY)}
    if random.random() < 0.15:
        asked[GPU] = "1"
    return {name: amount for name, amount in asked.items() if amount}


def _one_more(random: Random, built: PodBuilder) -> PodBuilder:
    weight = random.choice((None, random.randint(1, 100)))
    topology = random.choice((ZONE, HOSTNAME))
    namespaces = random.choice(({}, {}, {"namespaces": ("other",)}, {"namespace_labels": {"team": "third"}}))
    match random.randrange(10):
        case 0:
            return built.tolerate(random.choice(_TAINTS), effect=random.choice(("", "NoSchedule")))
        case 1:
            return built.node_selector(disk=random.choice(("hdd", "ssd")))
        case 2:
            zones = random.sample(_ZONES, random.randint(1, 3))
            return built.node_affinity(ZONE, random.choice(("In", "NotIn")), *zones, preferred=weight)
        case 3:
            bound = str(random.randint(1, 4))
            return built.node_affinity("generation", random.choice(("Gt", "Lt")), bound, preferred=weight)
        case 4:
            operator = random.choice(("Exists", "DoesNotExist"))
            return built.node_affinity("disk", operator, preferred=weight)
        case 5:
            port, ip = random.choice(_PORTS), random.choice(("", "10.0.0.1", "10.0.0.2"))
            if any(taken.host_port == port for taken in built.spec.containers[0].ports):
                return built
            return built.host_port(port, ip=ip, protocol=random.choice(("TCP", "UDP")))
        case 6 | 7:
            if any(other.topology_key == topology for other in built.spec.topology_spread_constraints):
                return built
            hard = random.random() < 0.5
            minimum = random.choice((None, 3)) if hard else None
            skew = random.randint(1, 3)
            return built.spread(
                topology, max_skew=skew, hard=hard, min_domains=minimum, app=random.choice(_APPS)
            )
        case 8:
            return built.affinity_to(topology, preferred=weight, app=random.choice(_APPS), **namespaces)
        case _:
            return built.anti_affinity_to(topology, preferred=weight, app=random.choice(_APPS), **namespaces)
