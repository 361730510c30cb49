"""Invalid arguments of plugins. Each is refused with its path and the allowed values."""

import pytest
from tests.config.configurations import profile_problems

SCORING = "scoringStrategy"
RATIO = f"{SCORING}.requestedToCapacityRatio"
ADDED = "addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"


def refused(name: str, args: str) -> tuple[str, ...]:
    found = profile_problems(f"pluginConfig: [{{name: {name}, args: {args}}}]")
    return tuple(problem.removeprefix("pluginConfig[0].args.") for problem in found)


@pytest.mark.parametrize(
    ("name", "args", "problem"),
    [
        (
            "NodeResourcesFit",
            "{kind: NodeAffinityArgs}",
            'kind: must be NodeResourcesFitArgs, found "NodeAffinityArgs"',
        ),
        (
            "NodeResourcesFit",
            "{apiVersion: kubescheduler.config.k8s.io/v1beta3}",
            'apiVersion: must be kubescheduler.config.k8s.io/v1, found "kubescheduler.config.k8s.io/v1beta3"',
        ),
        (
            "NodeResourcesFit",
            "{scoringStategy: {}}",
            'scoringStategy: unknown field; did you mean "scoringStrategy"?',
        ),
        (
            "DefaultPreemption",
            "{minCandidateNodesPercentage: 101}",
            "minCandidateNodesPercentage: must be a whole number from 0 to 100, found the number 101",
        ),
        (
            "DefaultPreemption",
            "{minCandidateNodesAbsolute: -1}",
            "minCandidateNodesAbsolute: must be a whole number of at least 0, found the number -1",
        ),
        (
            "DefaultPreemption",
            "{minCandidateNodesPercentage: 0, minCandidateNodesAbsolute: 0}",
            "minCandidateNodesAbsolute: must not be 0 if minCandidateNodesPercentage is 0 too",
        ),
        (
            "InterPodAffinity",
            "{hardPodAffinityWeight: 101}",
            "hardPodAffinityWeight: must be a whole number from 0 to 100, found the number 101",
        ),
        (
            "InterPodAffinity",
            "{ignorePreferredTermsOfExistingPods: 'no'}",
            'ignorePreferredTermsOfExistingPods: must be true or false, found the text "no"',
        ),
        (
            "DynamicResources",
            "{filterTimeout: -1s}",
            "filterTimeout: must not be negative; 0s means no limit",
        ),
        ("DynamicResources", "{bindingTimeout: 500ms}", "bindingTimeout: must be at least 1s"),
        (
            "VolumeBinding",
            "{bindTimeoutSeconds: -1}",
            "bindTimeoutSeconds: must be a whole number of at least 0, found the number -1",
        ),
        (
            "VolumeBinding",
            "{shape: [{utilization: 0, score: 0}]}",
            "shape: belongs to StorageCapacityScoring, an alpha feature that is off; remove it",
        ),
        (
            "NodeResourcesBalancedAllocation",
            "{resources: [{name: cpu, weight: 2}]}",
            "resources[0].weight: must be a whole number from 0 to 1, found the number 2",
        ),
        (
            "NodeResourcesBalancedAllocation",
            "{resources: [{name: cpu}, {name: cpu}]}",
            'resources[1].name: "cpu" is already listed; keep one of them',
        ),
    ],
)
def test_invalid_arguments_of_a_default_plugin_are_refused(name: str, args: str, problem: str) -> None:
    assert refused(name, args) == (problem,)


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (
            "{ignoredResources: [cpu, -x]}",
            "ignoredResources[1]: must be the name of a resource such as cpu or example.com/gpu, "
            'found the text "-x"',
        ),
        (
            "{ignoredResourceGroups: [example.com/gpu]}",
            "ignoredResourceGroups[0]: must be the domain of resources such as example.com, "
            'found the text "example.com/gpu"',
        ),
        (
            "{scoringStrategy: {resources: [{name: cpu}]}}",
            f"{SCORING}.type: missing; it must be LeastAllocated, MostAllocated or RequestedToCapacityRatio",
        ),
        (
            "{scoringStrategy: {type: BinPacking}}",
            f"{SCORING}.type: must be LeastAllocated, MostAllocated or RequestedToCapacityRatio, "
            'found the text "BinPacking"',
        ),
        (
            "{scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 101}]}}",
            f"{SCORING}.resources[0].weight: must be a whole number from 0 to 100, found the number 101",
        ),
        (
            "{scoringStrategy: {type: MostAllocated, resources: [{weight: 1}]}}",
            f"{SCORING}.resources[0].name: missing; "
            "it must be the name of a resource such as cpu or example.com/gpu",
        ),
        (
            "{scoringStrategy: {type: RequestedToCapacityRatio}}",
            f"{RATIO}: missing; RequestedToCapacityRatio needs its shape",
        ),
        (
            "{scoringStrategy: {type: RequestedToCapacityRatio, requestedToCapacityRatio: {shape: []}}}",
            f"{RATIO}.shape: missing; it needs at least one point, such as {{utilization: 100, score: 10}}",
        ),
        (
            "{scoringStrategy: {type: LeastAllocated, requestedToCapacityRatio: {shape: [{score: 1}]}}}",
            f"{RATIO}: belongs to RequestedToCapacityRatio, not to LeastAllocated; remove it",
        ),
        (
            "{scoringStrategy: {type: RequestedToCapacityRatio, requestedToCapacityRatio: "
            "{shape: [{utilization: 50}, {utilization: 50}]}}}",
            f"{RATIO}.shape[1]: the utilization must be above that of the point before",
        ),
        (
            "{scoringStrategy: {type: RequestedToCapacityRatio, requestedToCapacityRatio: "
            "{shape: [{utilization: 101}]}}}",
            f"{RATIO}.shape[0].utilization: must be a whole number from 0 to 100, found the number 101",
        ),
        (
            "{scoringStrategy: {type: RequestedToCapacityRatio, requestedToCapacityRatio: "
            "{shape: [{utilization: 1, score: 11}]}}}",
            f"{RATIO}.shape[0].score: must be a whole number from 0 to 10, found the number 11",
        ),
    ],
)
def test_invalid_arguments_of_node_resources_fit_are_refused(args: str, problem: str) -> None:
    assert refused("NodeResourcesFit", args) == (problem,)


@pytest.mark.parametrize(
    ("term", "problem"),
    [
        (
            "matchExpressions: [{operator: Exists}]",
            "matchExpressions[0].key: missing; it must be a label key such as app or example.com/app",
        ),
        (
            "matchExpressions: [{key: a b, operator: Exists}]",
            'matchExpressions[0].key: must be a label key such as app or example.com/app, found "a b"',
        ),
        (
            "matchExpressions: [{key: a, operator: Near}]",
            "matchExpressions[0].operator: must be In, NotIn, Exists, DoesNotExist, Gt or Lt, "
            'found the text "Near"',
        ),
        (
            "matchExpressions: [{key: a, operator: In}]",
            "matchExpressions[0].values: In needs at least one value",
        ),
        (
            "matchExpressions: [{key: a, operator: Exists, values: [b]}]",
            "matchExpressions[0].values: Exists takes no values; remove them",
        ),
        (
            "matchExpressions: [{key: a, operator: Lt, values: [b]}]",
            "matchExpressions[0].values: Lt needs exactly one value, a whole number in quotation marks",
        ),
        (
            "matchExpressions: [{key: a, operator: In, values: [b c]}]",
            "matchExpressions[0].values[0]: must be a text of at most 63 letters, digits, '-', '_' and '.', "
            'found the text "b c"',
        ),
        (
            "matchFields: [{key: metadata.name, operator: Exists, values: [a]}]",
            'matchFields[0].operator: must be In or NotIn, found the text "Exists"',
        ),
        (
            "matchFields: [{key: metadata.name, operator: In, values: [a, b]}]",
            "matchFields[0].values: needs exactly one value",
        ),
    ],
)
def test_an_invalid_added_affinity_is_refused(term: str, problem: str) -> None:
    required = f"requiredDuringSchedulingIgnoredDuringExecution: {{nodeSelectorTerms: [{{{term}}}]}}"
    assert refused("NodeAffinity", f"{{addedAffinity: {{{required}}}}}") == (f"{ADDED}.{problem}",)


SPREAD = "maxSkew: 1, topologyKey: rack, whenUnsatisfiable: DoNotSchedule"


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ("defaultingType: Own", 'defaultingType: must be System or List, found the text "Own"'),
        (
            f"defaultConstraints: [{{{SPREAD}}}]",
            "defaultingType: must be List when there are defaultConstraints",
        ),
        (
            f"defaultingType: List, defaultConstraints: [{{{SPREAD}}}, {{{SPREAD}}}]",
            "defaultConstraints[1]: has the topologyKey and whenUnsatisfiable of [0]; keep one of them",
        ),
        (
            f"defaultingType: List, defaultConstraints: [{{{SPREAD}, labelSelector: {{}}}}]",
            "defaultConstraints[0].labelSelector: not allowed here: "
            "it follows from each pod's services and owner",
        ),
        (
            f"defaultingType: List, defaultConstraints: [{{{SPREAD.replace('1', '0')}}}]",
            "defaultConstraints[0].maxSkew: must be a whole number of at least 1, found the number 0",
        ),
        (
            f"defaultingType: List, defaultConstraints: [{{{SPREAD.replace('maxSkew: 1, ', '')}}}]",
            "defaultConstraints[0].maxSkew: missing; it must be a whole number of at least 1",
        ),
        (
            f"defaultingType: List, defaultConstraints: [{{{SPREAD.replace('rack', 'a b')}}}]",
            "defaultConstraints[0].topologyKey: must be a label key such as app or example.com/app, "
            'found "a b"',
        ),
        (
            f"defaultingType: List, defaultConstraints: [{{{SPREAD.replace('rack', '')}}}]",
            "defaultConstraints[0].topologyKey: missing; "
            "it must be a label key such as app or example.com/app",
        ),
        (
            f"defaultingType: List, defaultConstraints: [{{{SPREAD.replace('DoNot', 'Do')}}}]",
            "defaultConstraints[0].whenUnsatisfiable: must be DoNotSchedule or ScheduleAnyway, "
            'found the text "DoSchedule"',
        ),
    ],
)
def test_invalid_default_constraints_are_refused(args: str, problem: str) -> None:
    assert refused("PodTopologySpread", f"{{{args}}}") == (problem,)


def test_arguments_given_twice_are_refused() -> None:
    found = profile_problems("pluginConfig: [{name: Ours}, {name: Ours}]")
    assert found == ("pluginConfig[1].name: Ours already has arguments; keep one of them",)


def test_arguments_of_an_unknown_plugin_are_refused() -> None:
    found = profile_problems("pluginConfig: [{name: NodeResourceFit, args: {a: 1}}]")
    assert found == (
        'pluginConfig[0].name: unknown plugin "NodeResourceFit"; did you mean "NodeResourcesFit"?',
    )


def test_arguments_of_a_plugin_without_arguments_are_refused() -> None:
    found = profile_problems("pluginConfig: [{name: NodeName, args: {a: 1}}]")
    assert found == ("pluginConfig[0].args: NodeName takes no arguments; remove them",)


def test_arguments_that_are_not_a_mapping_are_refused() -> None:
    for name in ("NodeResourcesFit", "Ours"):
        found = profile_problems(f"pluginConfig: [{{name: {name}, args: [1]}}]")
        assert found == ("pluginConfig[0].args: must be a mapping, found a list",)
