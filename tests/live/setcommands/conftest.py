"""A namespace of the shared cluster with triggers and plans, and nodes that the tests of a module share."""

from collections.abc import Iterator

import pytest
from tests.deploy.custom_resources import install
from tests.live.setcommands.commands import Stage, nodes

from longshore.dev import ControlPlane


@pytest.fixture(scope="session")
def with_triggers(control_plane: ControlPlane) -> ControlPlane:
    install(control_plane)
    return control_plane


@pytest.fixture(scope="module")
def pool(control_plane: ControlPlane) -> Iterator[list[str]]:
    with nodes(control_plane) as names:
        yield names


@pytest.fixture
def stage(with_triggers: ControlPlane, namespace: str, pool: list[str]) -> Stage:
    return Stage(with_triggers, namespace, pool)
