"""The list of default plugins."""

from typing import Any

import pytest
from tests.plugins.one_plugin import rejections, scores

from longshore.api import NodeAffinity as Affinity
from longshore.api import NodeSelector
from longshore.config import (
    KUBE_SCHEDULER_PLUGINS,
    NodeAffinityArgs,
    NodeResourcesFitArgs,
    ScoringStrategy,
)
from longshore.plugins import DEFAULT_PLUGINS
from longshore.testing import node, pod


class NoHandle:
    """A handle for plugins that need nothing from the engine."""


def made(name: str, args: Any = None) -> Any:
    return DEFAULT_PLUGINS[name](args, NoHandle())  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["NodeResourcesFit", "NodeName", "DefaultBinder", "DynamicResources"])
def test_a_plugin_is_created_by_its_name(name: str) -> None:
    assert made(name).name == name


def test_the_names_are_those_of_kube_scheduler_in_its_order() -> None:
    assert list(DEFAULT_PLUGINS) == [name for name in KUBE_SCHEDULER_PLUGINS if name in DEFAULT_PLUGINS]


def test_arguments_reach_the_plugin() -> None:
    empty = NodeSelector()
    enforcing = made(
        "NodeAffinity", NodeAffinityArgs(Affinity(required_during_scheduling_ignored_during_execution=empty))
    )
    assert rejections(enforcing, pod("a"), node("n1"))
    fit = made("NodeResourcesFit", NodeResourcesFitArgs((), (), ScoringStrategy("MostAllocated")))
    full = node("n1").allocatable(cpu="1", memory="1000")
    assert scores(fit, pod("a").requests(cpu="1", memory="1000"), full) == {"n1": 100}
