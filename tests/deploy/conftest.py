"""Fixtures for the tests of deploy/. Schedulers start as in the tests of the driver."""

import pytest
from tests.deploy.custom_resources import install
from tests.live.conftest import start_scheduler

from longshore.dev import ControlPlane

__all__ = ["start_scheduler"]


@pytest.fixture(scope="session")
def installed(control_plane: ControlPlane) -> ControlPlane:
    """The shared cluster, with the definitions of triggers and plans, and their roles."""
    install(control_plane)
    return control_plane
