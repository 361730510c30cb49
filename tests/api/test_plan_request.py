"""Where planners are found."""

from longshore.api.plan_request import address_of


def test_address_of_the_planner_behind_a_service() -> None:
    assert address_of("podset-planner", "planner-system") == (
        "podset-planner.planner-system.svc.cluster.local:7309"
    )
