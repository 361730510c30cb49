"""The address of a planner."""

from longshore.api.plan_request import address_of


def test_the_address_of_a_planner_is_that_of_its_service() -> None:
    assert address_of("podset-planner", "planner-system") == (
        "podset-planner.planner-system.svc.cluster.local:7309"
    )
