"""The arguments of PodSetPlanner in a configuration, and the planner services that they select."""

import pytest
from msgspec.structs import replace
from tests.podset.simulated_sets import planner

from longshore.config import default_configuration
from longshore.config.registry import register
from longshore.engine import Engine
from longshore.errors import UserError
from longshore.podset.arguments import planner_settings
from longshore.podset.planner_services import PlannerSettings, planners_of
from longshore.podset.plugin import PodSetPlanner
from longshore.podset.profile import podset_profile


def test_the_defaults_are_those_of_pallet_except_for_the_fallback() -> None:
    assert planner_settings(None) == PlannerSettings(
        fallback="built-in", namespaces=None, addresses={}, call_seconds=15.0
    )


def test_the_arguments_of_a_pallet_configuration_are_taken() -> None:
    args = {
        "apiVersion": "kubescheduler.config.k8s.io/v1beta2",
        "kind": "PodSetPlannerArgs",
        "debug": True,
        "callTimeout": "3s",
        "updatePeriod": "5s",
    }
    assert planner_settings(args).call_seconds == 3.0


@pytest.mark.parametrize("text", ["", "soon", "0s", "-2s"])
def test_a_timeout_that_is_not_a_duration_means_the_default(text: str) -> None:
    assert planner_settings({"callTimeout": text}).call_seconds == 15.0


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        ({"plannerFallback": "maybe"}, 'plannerFallback: must be built-in or none, found the text "maybe"'),
        ({"planners": []}, "planners: unknown field"),
        (
            {"plannerNamespaces": "planner-system"},
            'plannerNamespaces: must be a list, found the text "planner-system"',
        ),
    ],
)
def test_wrong_arguments_are_reported_in_one_line(args: dict[str, object], complaint: str) -> None:
    with pytest.raises(UserError) as caught:
        planner_settings(args)
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)


def test_two_profiles_that_would_write_the_same_plans_are_refused() -> None:
    profiles = (podset_profile(), podset_profile(scheduler_name="other"))
    configuration = replace(default_configuration(), profiles=profiles)
    with pytest.raises(UserError, match="another profile has PodSetPlanner already"):
        Engine(configuration, plugins={"PodSetPlanner": register(PodSetPlanner)})


def names(podset: str, *services: str, **settings: object) -> list[str]:
    """Return the planners of the set, given services as `namespace/name=set`."""
    built = []
    for each in services:
        place, _, of = each.partition("=")
        namespace, _, name = place.partition("/")
        built.append(planner(name, of, namespace=namespace))
    found = planners_of(podset, built, planner_settings(settings))
    return [each.name for each in found]


def test_planners_of_the_set_come_before_those_for_all() -> None:
    services = ("a/all=default", "b/own=batch", "c/own=batch")
    assert names("batch", *services) == ["b/own", "c/own"]
    assert names("other", *services) == ["a/all"]
    assert names("other", *services[1:]) == []


def test_planners_in_other_namespaces_than_the_allowed_ones_do_not_count() -> None:
    services = ("a/all=default", "b/own=batch")
    assert names("batch", *services, plannerNamespaces=["a"]) == ["a/all"]
    assert names("batch", *services, plannerNamespaces=["c"]) == []


def test_the_address_follows_from_the_name_unless_it_is_configured() -> None:
    settings = planner_settings({"plannerAddresses": {"a/one": "10.0.0.1:1", "*": "10.0.0.2:2"}})
    both = [planner("one", namespace="a"), planner("two", namespace="a")]
    assert [each.address for each in planners_of("x", both, settings)] == ["10.0.0.1:1", "10.0.0.2:2"]
    (found,) = planners_of("x", both[:1], PlannerSettings())
    assert found.address == "one.a.svc.cluster.local:7309"
