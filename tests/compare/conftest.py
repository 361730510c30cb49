"""Fixtures with both schedulers, which start once for all tests of a process."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.compare.two_schedulers import Arena

from longshore.dev import ControlPlane

_REAL = {"arena", "managed", "fresh"}


def _scoring(strategy: dict[str, Any]) -> dict[str, Any]:
    return {"name": "NodeResourcesFit", "args": {"scoringStrategy": strategy}}


_THREE = [
    {"name": "cpu", "weight": 3},
    {"name": "memory", "weight": 1},
    {"name": "example.com/gpu", "weight": 5},
]
_SHAPE = [{"utilization": 0, "score": 2}, {"utilization": 40, "score": 10}, {"utilization": 100, "score": 0}]
PROFILES: dict[str, dict[str, Any]] = {
    "default": {},
    "least": {"pluginConfig": [_scoring({"type": "LeastAllocated", "resources": _THREE})]},
    "most": {"pluginConfig": [_scoring({"type": "MostAllocated", "resources": _THREE})]},
    "ratio": {
        "pluginConfig": [
            _scoring(
                {
                    "type": "RequestedToCapacityRatio",
                    "resources": _THREE,
                    "requestedToCapacityRatio": {"shape": _SHAPE},
                }
            )
        ]
    },
    "balanced": {
        "pluginConfig": [
            {
                "name": "NodeResourcesBalancedAllocation",
                "args": {"resources": [{"name": named["name"], "weight": 1} for named in _THREE]},
            }
        ],
        "plugins": {
            "score": {
                "disabled": [{"name": "*"}],
                "enabled": [
                    {"name": "NodeResourcesBalancedAllocation", "weight": 7},
                    {"name": "ImageLocality", "weight": 2},
                ],
            }
        },
    },
}


@pytest.fixture(scope="session")
def arena(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arena]:
    """There is no KWOK and no controller, so objects stay as the tests create them."""
    with ControlPlane.start(nodes=0, kwok=False, controller_manager=False) as plane:
        yield from _fight(plane, tmp_path_factory.mktemp("arena"))


@pytest.fixture(scope="session")
def managed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arena]:
    """With KWOK and the controller manager, pods run and end, claims are bound, and budgets are counted."""
    with ControlPlane.start(nodes=0) as plane:
        yield from _fight(plane, tmp_path_factory.mktemp("managed"))


def _fight(plane: ControlPlane, folder: Path) -> Iterator[Arena]:
    arena = Arena(plane, folder, PROFILES)
    try:
        yield arena
    finally:
        arena.stop()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _REAL & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.control_plane)
