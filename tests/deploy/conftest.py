"""Schedulers are started as in the tests of the driver."""

from tests.live.conftest import start_scheduler

__all__ = ["start_scheduler"]
