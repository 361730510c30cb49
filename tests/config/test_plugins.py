"""The plugins of a profile, and their order. The expected orders are those of kube-scheduler 1.36.3."""

import pytest
from tests.config.configurations import configuration, loaded, problems, profile, profile_problems

from longshore.config import (
    KUBE_SCHEDULER_PLUGINS,
    EnabledPlugin,
    ProfileConfiguration,
    default_configuration,
)
from longshore.framework.extension_points import POINTS

SCORES = (
    "TaintToleration=3 NodeAffinity=2 NodeResourcesFit=1 VolumeBinding=1 PodTopologySpread=2 "
    "InterPodAffinity=2 DynamicResources=2 NodeResourcesBalancedAllocation=1 ImageLocality=1"
)
DEFAULTS = {
    "preEnqueue": "SchedulingGates DynamicResources DefaultPreemption",
    "queueSort": "PrioritySort",
    "preFilter": (
        "NodeAffinity NodePorts NodeResourcesFit VolumeRestrictions NodeVolumeLimits VolumeBinding "
        "VolumeZone PodTopologySpread InterPodAffinity DynamicResources NodeDeclaredFeatures"
    ),
    "filter": (
        "NodeUnschedulable NodeName TaintToleration NodeAffinity NodePorts NodeResourcesFit "
        "VolumeRestrictions NodeVolumeLimits VolumeBinding VolumeZone PodTopologySpread InterPodAffinity "
        "DynamicResources NodeDeclaredFeatures"
    ),
    "postFilter": "DynamicResources DefaultPreemption",
    "preScore": (
        "TaintToleration NodeAffinity NodeResourcesFit VolumeBinding PodTopologySpread InterPodAffinity "
        "NodeResourcesBalancedAllocation"
    ),
    "score": SCORES,
    "reserve": "VolumeBinding DynamicResources",
    "permit": "",
    "preBind": "VolumeBinding DynamicResources",
    "bind": "DefaultBinder",
    "postBind": "",
}


def shown(plugins: tuple[EnabledPlugin, ...]) -> str:
    return " ".join(f"{p.name}={p.weight}" if p.weight else p.name for p in plugins)


def at(point: str, plugins: str) -> str:
    return shown(profile(f"plugins: {plugins}").points[point])


def everywhere(profile: ProfileConfiguration) -> dict[str, str]:
    return {point: shown(plugins) for point, plugins in profile.points.items()}


def test_without_a_file_the_default_plugins_run_in_their_order() -> None:
    (only,) = default_configuration().profiles
    assert only.scheduler_name == "longshore"
    assert everywhere(only) == DEFAULTS


def test_an_empty_profile_has_the_default_plugins() -> None:
    (only,) = configuration("").profiles
    assert everywhere(only) == DEFAULTS
    assert tuple(only.points) == tuple(POINTS)


def test_a_plugin_disabled_at_one_point_stays_enabled_at_the_others() -> None:
    some = profile("plugins: {score: {disabled: [{name: NodeAffinity}]}}")
    assert shown(some.points["score"]) == SCORES.replace("NodeAffinity=2 ", "")
    assert shown(some.points["filter"]) == DEFAULTS["filter"]


def test_a_plugin_disabled_by_multi_point_is_disabled_at_all_points() -> None:
    some = profile("plugins: {multiPoint: {disabled: [{name: NodeAffinity}]}}")
    assert not any(plugin.name == "NodeAffinity" for plugins in some.points.values() for plugin in plugins)


def test_a_default_plugin_listed_at_a_point_comes_first_there_with_the_weight_given() -> None:
    assert at("score", "{score: {enabled: [{name: ImageLocality, weight: 7}, {name: NodeAffinity}]}}") == (
        "ImageLocality=7 NodeAffinity=1 TaintToleration=3 NodeResourcesFit=1 VolumeBinding=1 "
        "PodTopologySpread=2 InterPodAffinity=2 DynamicResources=2 NodeResourcesBalancedAllocation=1"
    )


def test_an_additional_plugin_at_a_point_comes_last() -> None:
    assert at("score", "{score: {enabled: [{name: Ours, weight: 5}]}}") == f"{SCORES} Ours=5"
    assert at("score", "{score: {enabled: [{name: Ours}, {name: ImageLocality}]}}") == (
        f"ImageLocality=1 {SCORES.removesuffix(' ImageLocality=1')} Ours=1"
    )


def test_a_default_plugin_listed_in_multi_point_keeps_its_place_and_loses_its_weight() -> None:
    changed = at(
        "score", "{multiPoint: {enabled: [{name: NodeAffinity}, {name: InterPodAffinity, weight: 9}]}}"
    )
    assert changed == SCORES.replace("NodeAffinity=2", "NodeAffinity=1").replace(
        "PodAffinity=2", "PodAffinity=9"
    )


def test_a_default_plugin_disabled_and_enabled_in_multi_point_goes_to_the_end() -> None:
    both = (
        "{multiPoint: {disabled: [{name: TaintToleration}], enabled: [{name: TaintToleration, weight: 4}]}}"
    )
    assert at("score", both) == f"{SCORES.removeprefix('TaintToleration=3 ')} TaintToleration=4"


def test_a_default_plugin_disabled_and_enabled_at_a_point_goes_to_the_end_of_it() -> None:
    both = "{filter: {disabled: [{name: NodeName}], enabled: [{name: NodeName}]}}"
    assert at("filter", both) == f"{DEFAULTS['filter'].replace('NodeName ', '')} NodeName"


def test_an_additional_plugin_in_multi_point_is_enabled_at_all_of_its_points() -> None:
    some = profile("plugins: {multiPoint: {enabled: [{name: Ours, weight: 3}]}}")
    assert shown(some.points["filter"]) == f"{DEFAULTS['filter']} Ours"
    assert shown(some.points["score"]) == f"{SCORES} Ours=3"
    assert shown(some.points["bind"]) == DEFAULTS["bind"]


def test_a_weight_at_the_point_overrides_that_of_multi_point() -> None:
    both = "{multiPoint: {enabled: [{name: Ours, weight: 3}]}, score: {enabled: [{name: Ours, weight: 8}]}}"
    assert at("score", both) == f"Ours=8 {SCORES}"


def test_all_disabled_by_multi_point_leaves_the_listed_plugins() -> None:
    listed = "enabled: [{name: PrioritySort}, {name: Ours}, {name: DefaultBinder}]"
    some = profile(f"plugins: {{multiPoint: {{disabled: [{{name: '*'}}], {listed}}}}}")
    assert {point: names for point, names in everywhere(some).items() if names} == {
        "queueSort": "PrioritySort",
        "filter": "Ours",
        "score": "Ours=1",
        "bind": "DefaultBinder",
    }


def test_all_disabled_at_a_point_leaves_what_the_point_lists_in_its_order() -> None:
    some = "{score: {disabled: [{name: '*'}], enabled: [{name: Ours, weight: 2}, {name: NodeResourcesFit}]}}"
    assert at("score", some) == "Ours=2 NodeResourcesFit=1"
    assert at("filter", some) == DEFAULTS["filter"]


def test_weight_0_of_a_plugin_means_1() -> None:
    assert at("score", "{score: {enabled: [{name: Ours, weight: 0}]}}") == f"{SCORES} Ours=1"


def test_profiles_are_resolved_independently() -> None:
    first, second = configuration(
        """
        profiles:
        - schedulerName: default-scheduler
        - schedulerName: no-scoring
          plugins:
            preScore: {disabled: [{name: "*"}]}
            score: {disabled: [{name: "*"}]}
        """
    ).profiles
    assert everywhere(first) == DEFAULTS
    assert everywhere(second) == {**DEFAULTS, "preScore": "", "score": ""}


@pytest.mark.parametrize("point", [*POINTS, "multiPoint"])
def test_an_unknown_plugin_is_refused_with_a_similar_name(point: str) -> None:
    found = profile_problems(f"plugins: {{{point}: {{enabled: [{{name: NodeResourceFit}}]}}}}")
    expected = (
        f'plugins.{point}.enabled[0].name: unknown plugin "NodeResourceFit"; did you mean "NodeResourcesFit"?'
    )
    assert found == (expected,)


def test_an_unknown_plugin_without_a_similar_name_is_refused() -> None:
    found = profile_problems("plugins: {score: {enabled: [{name: Frobnicate}]}}")
    assert found == ('plugins.score.enabled[0].name: unknown plugin "Frobnicate"',)


def test_a_plugin_of_an_older_kubernetes_is_refused() -> None:
    found = profile_problems("plugins: {filter: {enabled: [{name: EBSLimits}]}}")
    assert found == (
        'plugins.filter.enabled[0].name: unknown plugin "EBSLimits": '
        "it was removed and replaced by NodeVolumeLimits",
    )


def test_disabling_an_unknown_plugin_gives_a_warning() -> None:
    (warning,) = loaded("profiles: [{plugins: {score: {disabled: [{name: ImageLocalty}]}}}]").warnings
    assert warning == (
        'profiles[0].plugins.score.disabled[0].name: there is no plugin "ImageLocalty" to disable; '
        'did you mean "ImageLocality"?'
    )


def test_a_plugin_at_a_point_that_it_does_not_have_is_refused() -> None:
    found = profile_problems("plugins: {score: {enabled: [{name: NodeName}]}}")
    assert found == ("plugins.score.enabled[0].name: NodeName does not implement score, only filter",)


@pytest.mark.parametrize("point", ["score", "multiPoint"])
def test_a_plugin_enabled_twice_is_refused(point: str) -> None:
    found = profile_problems(
        f"plugins: {{{point}: {{enabled: [{{name: Ours}}, {{name: Ours, weight: 2}}]}}}}"
    )
    assert found == (f"plugins.{point}.enabled[1].name: Ours is already enabled here; keep one of them",)


def test_enabling_a_star_is_refused() -> None:
    (found,) = profile_problems("plugins: {score: {enabled: [{name: '*'}]}}")
    assert found.endswith('unknown plugin "*": it stands for all plugins, and is allowed only under disabled')


def test_a_plugin_without_a_name_is_refused() -> None:
    assert profile_problems("plugins: {score: {enabled: [{weight: 2}], disabled: [{}]}}") == (
        "plugins.score.enabled[0].name: missing; it must be the name of a plugin",
        'plugins.score.disabled[0].name: missing; it must be the name of a plugin, or "*" for all',
    )


@pytest.mark.parametrize(
    ("weight", "problem"),
    [
        ("-1", "must be a whole number of at least 0, found the number -1"),
        ("1.5", "must be a whole number of at least 0, found the number 1.5"),
        ("heavy", 'must be a whole number of at least 0, found the text "heavy"'),
        ("true", "must be a whole number of at least 0, found true"),
        ("[1]", "must be a whole number of at least 0, found a list"),
        ("3000000000", "must be a whole number of at most 2147483647, found the number 3000000000"),
    ],
)
def test_an_invalid_weight_is_refused(weight: str, problem: str) -> None:
    found = profile_problems(f"plugins: {{score: {{enabled: [{{name: Ours, weight: {weight}}}]}}}}")
    assert found == (f"plugins.score.enabled[0].weight: {problem}",)


def test_an_unknown_extension_point_is_refused() -> None:
    found = profile_problems("plugins: {scores: {enabled: [{name: Ours}]}}")
    assert found == ('plugins.scores: unknown field; did you mean "score"?',)


def test_a_profile_without_a_bind_plugin_is_refused() -> None:
    found = profile_problems("plugins: {bind: {disabled: [{name: DefaultBinder}]}}")
    assert found == ("plugins.bind: at least one plugin must be enabled, such as DefaultBinder",)
    assert at("bind", "{bind: {disabled: [{name: '*'}], enabled: [{name: OurBinder}]}}") == "OurBinder"


def test_a_profile_must_have_exactly_one_queue_sort_plugin() -> None:
    assert profile_problems("plugins: {queueSort: {disabled: [{name: '*'}]}}") == (
        "plugins.queueSort: exactly one plugin must be enabled, found none",
    )
    assert profile_problems("plugins: {queueSort: {enabled: [{name: OurSort}]}}") == (
        "plugins.queueSort: exactly one plugin must be enabled, found PrioritySort and OurSort",
    )


OUR_SORT = "plugins: {queueSort: {disabled: [{name: '*'}], enabled: [{name: OurSort}]}}"


def test_profiles_with_different_queue_sort_plugins_are_refused() -> None:
    assert problems(f"profiles: [{{schedulerName: a}}, {{schedulerName: b, {OUR_SORT}}}]") == (
        "profiles[1].plugins.queueSort: must be the same in all profiles, "
        "found OurSort here and PrioritySort in profiles[0]",
    )


def test_profiles_with_different_arguments_of_queue_sort_are_refused() -> None:
    args = "pluginConfig: [{name: OurSort, args: {by: age}}]"
    assert problems(
        f"profiles: [{{schedulerName: a, {OUR_SORT}}}, {{schedulerName: b, {OUR_SORT}, {args}}}]"
    ) == (
        "profiles[1].pluginConfig: the arguments of OurSort must be the same in all profiles, "
        "which share one queue",
    )
    both = loaded(
        f"profiles: [{{schedulerName: a, {OUR_SORT}, {args}}}, {{schedulerName: b, {OUR_SORT}, {args}}}]"
    )
    assert len(both.configuration.profiles) == 2


def test_plugins_without_effect_yet_give_one_warning_and_change_nothing() -> None:
    result = loaded(
        """
        profiles:
        - plugins:
            multiPoint:
              enabled: [{name: GangScheduling}, {name: TopologyPlacementGenerator}, {name: PodGroupPodsCount}]
            placementScore:
              enabled: [{name: NodeResourcesFit}]
          pluginConfig:
          - name: DynamicResources
            args: {filterTimeout: 5s}
        """
    )
    assert result.warnings == (
        "GangScheduling, TopologyPlacementGenerator, PodGroupPodsCount, placementScore, DynamicResources: "
        "accepted, but has no effect in Longshore yet",
    )
    assert everywhere(result.configuration.profiles[0]) == DEFAULTS


def test_plugins_without_effect_yet_give_no_warning_unless_they_are_enabled() -> None:
    assert loaded("").warnings == ()
    assert (
        loaded("profiles: [{plugins: {multiPoint: {disabled: [{name: DynamicResources}]}}}]").warnings == ()
    )


def test_every_point_of_the_table_is_a_point() -> None:
    for plugin in KUBE_SCHEDULER_PLUGINS.values():
        assert plugin.points <= {*POINTS, "placementGenerate", "placementScore"}
