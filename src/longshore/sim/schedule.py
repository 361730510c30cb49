"""Where pods would go, in one call: for tests of plugins, and for a quick question.

schedule(nodes=[node("n1"), node("n2").labels(disk="ssd")], pods=[pod("db")], plugins=[fast_disks])
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from longshore.api import Node, Pod
from longshore.api.meta import ApiObject
from longshore.config import Configuration, LongshoreSettings, default_configuration
from longshore.config.registry import register
from longshore.config.setup import enable
from longshore.engine import Engine
from longshore.sim.simulation import Simulation

_DEFAULT_NAMESPACE = "default/"
# Longer than any plugin can hold a pod in Permit; a pod that keeps failing would be tried forever.
_SECONDS = 1000.0


class Placed(dict[str, str]):
    """The node of each pod that was bound: by name, or by `namespace/name` outside of `default`.

    `pending` has the other pods, each with the message of its condition.
    """

    def __init__(self, nodes: Mapping[str, str], pending: Mapping[str, str]) -> None:
        super().__init__(nodes)
        self.pending = dict(pending)


def schedule(
    *,
    nodes: Iterable[Node],
    pods: Iterable[Pod],
    plugins: Iterable[Any] = (),
    args: Mapping[str, Mapping[str, object]] | None = None,
    others: Iterable[ApiObject] = (),
    measured: Mapping[str, Mapping[str, float]] | None = None,
) -> Placed:
    """Bind the pods in virtual time, with the default plugins and these: classes and decorated functions.

    All pods are created at once; those with a node exist before. `args` are the arguments of plugins by
    name, as in `pluginConfig`. `others` are objects of other kinds, such as volumes. `measured` is the load
    of nodes before any pod is created, by measure and node, as in `{"cpu/mean": {"n1": 1500}}`; without it,
    agents use the nodes' annotations. Among equally good nodes the first by name is taken.
    """
    registered = [register(plugin) for plugin in plugins]
    configuration = enable(_with_arguments(args or {}), registered)
    simulation = Simulation(Engine(configuration, plugins={plugin.name: plugin for plugin in registered}))
    simulation.create(*others, *nodes)
    simulation.measure(measured or {})
    simulation.create(*pods)
    simulation.run(until=_SECONDS)
    bound = {pod.key: pod.spec.node_name for pod in simulation.cluster.pods.values() if pod.spec.node_name}
    pending = {key: _why(pod) for key, pod in simulation.cluster.pods.items() if key not in bound}
    return Placed(_by_name(bound), _by_name(pending))


def _with_arguments(args: Mapping[str, Mapping[str, object]]) -> Configuration:
    configuration = default_configuration()
    [profile] = configuration.profiles
    profile = msgspec.structs.replace(profile, args={**profile.args, **args})
    first = LongshoreSettings(tie_break="first")
    return msgspec.structs.replace(configuration, profiles=(profile,), longshore=first)


def _by_name(found: Mapping[str, str]) -> dict[str, str]:
    return {key.removeprefix(_DEFAULT_NAMESPACE): value for key, value in found.items()}


def _why(pod: Pod) -> str:
    said = (c.message for c in pod.status.conditions if c.type == "PodScheduled")
    return next(said, "")
