"""An engine with Reward, and its scores for pods of a type."""

from typing import Any

import msgspec

from longshore.agents.reward.plugin import Reward
from longshore.api import Pod
from longshore.cluster import PodInfo
from longshore.config import Configuration, LongshoreSettings, default_configuration
from longshore.config.registry import register
from longshore.config.setup import enable
from longshore.engine import Engine
from longshore.framework import CycleState
from longshore.testing import PodBuilder, pod

EPOCH = 1_785_578_400.0


def learning(*profiles: str, **args: object) -> Engine:
    """Return an engine with profiles of these names, or a single one with the usual name."""
    return Engine(configuration(*profiles, **args), plugins={"Reward": register(Reward)}, epoch=EPOCH)


def configuration(*profiles: str, **args: object) -> Configuration:
    default = default_configuration()
    [only] = default.profiles
    made = tuple(
        msgspec.structs.replace(only, scheduler_name=name, args={**only.args, "Reward": args})
        for name in profiles or (only.scheduler_name,)
    )
    whole = msgspec.structs.replace(default, profiles=made, longshore=LongshoreSettings(tie_break="first"))
    return enable(whole, [register(Reward)])


def agent(engine: Engine, profile: str = "longshore") -> Any:
    return next(slot.plugin for slot in engine.profiles[profile].scores if slot.name == "Reward")


def scores(engine: Engine, asked: Pod, profile: str = "longshore") -> dict[str, int]:
    nodes = engine.cluster.all_nodes()
    found = agent(engine, profile).score(CycleState(), PodInfo.of(asked), nodes)
    return dict(zip(nodes.names, found.tolist(), strict=True))


def typed(name: str, kind: str = "D") -> PodBuilder:
    return pod(name).labels(podtype=kind)
