"""Any file is either read or refused in plain lines."""

import json
from collections.abc import Mapping

import yaml
from hypothesis import given
from hypothesis import strategies as st

from longshore.config import KUBE_SCHEDULER_PLUGINS, InvalidConfiguration, parse
from longshore.framework.extension_points import POINTS

# Names that the readers know. Arbitrary ones would be refused early.
KEYS = [
    "profiles",
    "plugins",
    "pluginConfig",
    "args",
    "name",
    "weight",
    "enabled",
    "disabled",
    "multiPoint",
    "schedulerName",
    "extenders",
    "leaderElection",
    "clientConnection",
    "longshore",
    "percentageOfNodesToScore",
    "scoringStrategy",
    "type",
    "resources",
    "shape",
    "requestedToCapacityRatio",
    "utilization",
    "score",
    "addedAffinity",
    "defaultConstraints",
    "defaultingType",
    "maxSkew",
    "topologyKey",
    "whenUnsatisfiable",
    "requiredDuringSchedulingIgnoredDuringExecution",
    "nodeSelectorTerms",
    "matchExpressions",
    "matchFields",
    "key",
    "operator",
    "values",
    "urlPrefix",
    "tlsConfig",
    "managedResources",
    "httpTimeout",
    "leaseDuration",
    "renewDeadline",
    "qps",
    "burst",
    "bindVerb",
    "caData",
    "tieBreak",
    "seed",
    "pluginTimeout",
    "kind",
    "apiVersion",
]
WORDS = ["*", "", "15s", "-1h", "In", "Gt", "List", "MostAllocated", "http://x", "aGk=", "example.com/gpu"]

keys = st.sampled_from(KEYS) | st.sampled_from([*POINTS]) | st.text(max_size=5)
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(WORDS)
    | st.sampled_from(sorted(KUBE_SCHEDULER_PLUGINS))
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=30,
)


def plugin(inner: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    named = {"name": st.sampled_from(sorted(KUBE_SCHEDULER_PLUGINS)) | st.just("*")}
    return st.fixed_dictionaries(named, optional={"weight": st.integers(-1, 2**31) | inner}) | inner


sets = st.fixed_dictionaries(
    {}, optional={"enabled": st.lists(plugin(values)), "disabled": st.lists(plugin(values))}
)
profiles = st.fixed_dictionaries(
    {},
    optional={
        "schedulerName": st.sampled_from("ab") | values,
        "plugins": st.dictionaries(st.sampled_from([*POINTS, "multiPoint"]), sets, max_size=3) | values,
        "pluginConfig": st.lists(
            st.fixed_dictionaries({"name": st.sampled_from(sorted(KUBE_SCHEDULER_PLUGINS)), "args": values}),
            max_size=2,
        ),
    },
)
configurations = st.fixed_dictionaries(
    {
        "apiVersion": st.just("kubescheduler.config.k8s.io/v1"),
        "kind": st.just("KubeSchedulerConfiguration"),
    },
    optional={
        "profiles": st.lists(profiles, max_size=2),
        "extenders": st.lists(values, max_size=2) | values,
        "leaderElection": values,
        "clientConnection": values,
        "longshore": values,
        "percentageOfNodesToScore": values,
    },
)


def read(text: str) -> None:
    """Read the text. It must be valid, or each problem must be one line."""
    try:
        result = parse(text, source="file.yaml")
    except InvalidConfiguration as error:
        assert error.problems
        assert all(problem.isprintable() for problem in (str(error), *error.problems, *error.warnings))
        return
    for profile in result.configuration.profiles:
        assert profile.scheduler_name
        assert tuple(profile.points) == tuple(POINTS)
        assert len(profile.points["queueSort"]) == 1
        assert all(plugin.weight >= 1 for plugin in profile.points["score"])


@given(values)
def test_any_json_document_is_read_or_refused_in_plain_lines(document: object) -> None:
    read(json.dumps(document))


@given(configurations)
def test_any_configuration_is_read_or_refused_in_plain_lines(document: Mapping[str, object]) -> None:
    read(json.dumps(document))
    read(yaml.safe_dump(document, allow_unicode=True))


@given(st.text())
def test_any_text_is_read_or_refused_in_plain_lines(text: str) -> None:
    read(text)
