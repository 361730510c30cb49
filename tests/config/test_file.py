"""The configuration file as a whole: its version and kind, the fields for all profiles, and our own keys."""

from pathlib import Path

import pytest
from tests.config.configurations import HEAD, configuration, loaded, problems

from longshore.config import (
    ClientConnection,
    Configuration,
    InvalidConfiguration,
    LeaderElection,
    LongshoreSettings,
    default_configuration,
    load,
    parse,
    plugin_sources,
)
from longshore.errors import UserError


def refused(text: str) -> tuple[str, ...]:
    with pytest.raises(InvalidConfiguration) as caught:
        parse(text, source="file.yaml")
    return caught.value.problems


@pytest.mark.parametrize("version", ["v1beta2", "v1beta3"])
def test_a_file_of_an_older_version_is_read_as_v1_with_a_warning(version: str) -> None:
    loaded = parse(
        HEAD.replace("/v1", f"/{version}") + "profiles: [{schedulerName: one}]\n", source="file.yaml"
    )
    assert (
        loaded.configuration == parse(HEAD + "profiles: [{schedulerName: one}]\n", source="f").configuration
    )
    assert f"apiVersion: kubescheduler.config.k8s.io/{version} is read as " in loaded.warnings[0]


def test_a_field_of_an_older_version_that_v1_removed_is_refused() -> None:
    (problem,) = refused(HEAD.replace("/v1", "/v1beta2") + "healthzBindAddress: ''\n")
    assert problem == "healthzBindAddress: was removed from the file in v1; remove it"


def test_a_file_of_an_unsupported_version_is_refused() -> None:
    (problem,) = refused(HEAD.replace("/v1", "/v1beta1"))
    assert problem.startswith(
        "apiVersion: must be kubescheduler.config.k8s.io/v1, "
        'found the text "kubescheduler.config.k8s.io/v1beta1"; older versions differ'
    )


def test_a_file_of_another_kind_is_refused() -> None:
    assert refused("apiVersion: v1\nkind: Pod\nspec: {}\n") == (
        'apiVersion: must be kubescheduler.config.k8s.io/v1, found the text "v1"',
        'kind: must be KubeSchedulerConfiguration, found the text "Pod"',
    )


def test_a_file_without_version_and_kind_is_refused() -> None:
    assert refused("profiles: []\n") == (
        "apiVersion: must be kubescheduler.config.k8s.io/v1, found nothing",
        "kind: must be KubeSchedulerConfiguration, found nothing",
    )


def test_a_file_with_only_version_and_kind_has_the_defaults_of_kube_scheduler() -> None:
    result = configuration("")
    assert result == Configuration(profiles=result.profiles)
    assert result.leader_election == LeaderElection(
        leader_elect=True,
        lease_duration=15.0,
        renew_deadline=10.0,
        retry_period=2.0,
        resource_lock="leases",
        resource_name="kube-scheduler",
        resource_namespace="kube-system",
    )
    assert result.client_connection == ClientConnection(
        kubeconfig="",
        accept_content_types="",
        content_type="application/vnd.kubernetes.protobuf",
        qps=50.0,
        burst=100,
    )
    assert (result.parallelism, result.percentage_of_nodes_to_score) == (16, 0)
    assert (result.pod_initial_backoff_seconds, result.pod_max_backoff_seconds) == (1, 10)
    assert result.enable_profiling
    assert result.enable_contention_profiling
    assert not result.delay_cache_until_active
    assert [profile.scheduler_name for profile in result.profiles] == ["default-scheduler"]


def test_without_a_file_the_lease_has_the_name_of_the_scheduler() -> None:
    result = default_configuration("mine")
    assert result.leader_election == LeaderElection(resource_name="mine")
    assert result.profiles[0].scheduler_name == "mine"
    assert result.profiles[0].points == configuration("").profiles[0].points


def test_all_fields_outside_the_profiles_are_read() -> None:
    result = configuration(
        """
        parallelism: 4
        percentageOfNodesToScore: 30
        podInitialBackoffSeconds: 2
        podMaxBackoffSeconds: 60
        enableProfiling: false
        delayCacheUntilActive: true
        leaderElection:
          leaderElect: false
          leaseDuration: 1m0s
          renewDeadline: 1500ms
          retryPeriod: 1s
          resourceName: mine
          resourceNamespace: scheduling
        clientConnection:
          kubeconfig: /etc/kubeconfig
          qps: 12.5
          burst: 20
          acceptContentTypes: application/json
          contentType: application/json
        """
    )
    assert result == Configuration(
        profiles=result.profiles,
        parallelism=4,
        percentage_of_nodes_to_score=30,
        pod_initial_backoff_seconds=2,
        pod_max_backoff_seconds=60,
        enable_profiling=False,
        enable_contention_profiling=False,
        delay_cache_until_active=True,
        leader_election=LeaderElection(False, 60.0, 1.5, 1.0, "leases", "mine", "scheduling"),
        client_connection=ClientConnection(
            "/etc/kubeconfig", "application/json", "application/json", 12.5, 20
        ),
    )


def test_null_means_that_a_field_is_not_set() -> None:
    assert configuration("parallelism:\nprofiles:\nleaderElection: {leaderElect: null}\n") == configuration(
        ""
    )


def test_the_percentage_of_a_profile_overrides_that_of_the_file() -> None:
    profiles = configuration(
        "percentageOfNodesToScore: 30\n"
        "profiles: [{schedulerName: a, percentageOfNodesToScore: 0}, {schedulerName: b}]\n"
    ).profiles
    assert [profile.percentage_of_nodes_to_score for profile in profiles] == [0, 30]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("parallelism: 0", "parallelism: must be a whole number of at least 1, found the number 0"),
        (
            "percentageOfNodesToScore: 101",
            "percentageOfNodesToScore: must be a whole number from 0 to 100, found the number 101",
        ),
        (
            "podInitialBackoffSeconds: 0",
            "podInitialBackoffSeconds: must be a whole number of at least 1, found the number 0",
        ),
        (
            "podInitialBackoffSeconds: 20",
            "podMaxBackoffSeconds: must be at least podInitialBackoffSeconds, 20",
        ),
        ("enableProfiling: maybe", 'enableProfiling: must be true or false, found the text "maybe"'),
        (
            "healthzBindAddress: 0.0.0.0:10251",
            "healthzBindAddress: was removed from the file in v1; remove it",
        ),
        ("paralelism: 4", 'paralelism: unknown field; did you mean "parallelism"?'),
        ('"a b\\n": 4', '["a b\\n"]: unknown field'),
        ("profiles: {}", "profiles: must be a list of mappings, found a mapping"),
        ("profiles: [null]", "profiles[0]: must be a mapping, found nothing"),
        ("leaderElection: 15s", 'leaderElection: must be a mapping, found the text "15s"'),
        (
            "leaderElection: {leaseDuration: 15}",
            "leaderElection.leaseDuration: must be a duration such as 15s or 1m30s, found the number 15",
        ),
        ("leaderElection: {retryPeriod: -2s}", "leaderElection.retryPeriod: must be greater than 0s"),
        (
            "leaderElection: {leaseDuration: 10s}",
            "leaderElection.leaseDuration: must be greater than renewDeadline, 10s",
        ),
        (
            "leaderElection: {resourceLock: endpoints}",
            'leaderElection.resourceLock: must be leases, found "endpoints"',
        ),
        (
            "clientConnection: {burst: -1}",
            "clientConnection.burst: must be a whole number of at least 0, found the number -1",
        ),
        (
            f"clientConnection: {{qps: 1{'0' * 400}}}",
            "clientConnection.qps: must be a number, found a number of more than 20 digits",
        ),
        ("clientConnection: {qps: fast}", 'clientConnection.qps: must be a number, found the text "fast"'),
        (
            "clientConnection: {kubeconfig: 5}",
            "clientConnection.kubeconfig: must be a text, found the number 5",
        ),
        (
            "profiles: [{schedulerName: ''}]",
            "profiles[0].schedulerName: missing; it must be a name that no other profile has",
        ),
        (
            "profiles: [{schedulerName: a}, {}]",
            "profiles[1].schedulerName: missing; it must be a name that no other profile has",
        ),
        (
            "profiles: [{schedulerName: a}, {schedulerName: a}]",
            'profiles[1].schedulerName: "a" is already the name of profiles[0]; each needs its own',
        ),
        (
            "profiles: [{percentageOfNodesToScore: -1}]",
            "profiles[0].percentageOfNodesToScore: must be a whole number from 0 to 100, found the number -1",
        ),
        (
            "longshore: {tieBreak: coin}",
            'longshore.tieBreak: must be random, first or heap, found the text "coin"',
        ),
        ("longshore: {seed: x}", 'longshore.seed: must be a whole number, found the text "x"'),
        ("longshore: {pluginTimeout: 0s}", "longshore.pluginTimeout: must be greater than 0s"),
        (
            "longshore: {plugins: [mine.py, mine]}",
            'longshore.plugins[1]: must be module:attribute or the path of a .py file, found the text "mine"',
        ),
        ("longshore: {tiebreak: first}", 'longshore.tiebreak: unknown field; did you mean "tieBreak"?'),
    ],
)
def test_invalid_fields_are_refused_with_their_path(text: str, problem: str) -> None:
    assert problems(text) == (problem,)


def test_durations_are_not_compared_without_leader_election() -> None:
    off = "leaderElection: {leaderElect: false, leaseDuration: 1s, retryPeriod: -2s, resourceLock: endpoints}"
    assert not configuration(off).leader_election.leader_elect


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("15s", 15),
        ("1m30s", 90),
        ("1.5h", 5400),
        ("250ms", 0.25),
        ("1h0m0.5s", 3600.5),
        ("0", 15),
        ("0s", 15),
    ],
)
def test_durations_are_read_in_the_notation_of_go(written: str, seconds: float) -> None:
    election = configuration(
        f"leaderElection: {{leaseDuration: '{written}', renewDeadline: 1ns, resourceName: x}}"
    ).leader_election
    assert election.lease_duration == seconds


@pytest.mark.parametrize("written", ["15", "s", "1d", "1 s", "1s2", "", "٣s", "9999999h", "9" * 5000 + "s"])
def test_an_invalid_duration_is_refused(written: str) -> None:
    (problem,) = problems(f"leaderElection: {{leaseDuration: '{written}'}}")
    assert problem.startswith("leaderElection.leaseDuration: must be a duration such as 15s or 1m30s, found ")


def test_the_lease_of_kube_scheduler_gives_a_warning() -> None:
    other_profile = "profiles: [{schedulerName: mine}]\n"
    assert loaded(other_profile).warnings == (
        "leaderElection.resourceName: this is the lease of kube-scheduler; "
        "specify another one to run next to it",
    )
    assert loaded(f"{other_profile}leaderElection: {{resourceName: mine}}").warnings == ()
    assert loaded(f"{other_profile}leaderElection: {{leaderElect: false}}").warnings == ()


def test_settings_under_the_key_longshore_are_read() -> None:
    settings = (
        "{tieBreak: heap, seed: 7, pluginTimeout: 250ms, plugins: ['my.module:Plugin', ./plugins/x.py]}"
    )
    assert configuration(f"longshore: {settings}").longshore == LongshoreSettings(
        "heap", 7, 0.25, ("my.module:Plugin", "./plugins/x.py")
    )
    assert configuration("").longshore == LongshoreSettings("random", 0, 1.0, ())


def test_all_problems_are_reported_together_in_one_line() -> None:
    with pytest.raises(InvalidConfiguration) as caught:
        loaded("parallelism: 0\nprofiles: [{schedulerName: 5, plugins: [], pluginConfig: {}}]\nother: 1\n")
    error = caught.value
    assert error.problems == (
        "profiles[0].schedulerName: must be a text, found the number 5",
        "profiles[0].plugins: must be a mapping, found a list",
        "profiles[0].pluginConfig: must be a list of mappings, found a mapping",
        "parallelism: must be a whole number of at least 1, found the number 0",
        "other: unknown field",
    )
    assert str(error) == (
        "file.yaml: profiles[0].schedulerName: must be a text, found the number 5 "
        "(and 4 more: see `longshore config check file.yaml`)"
    )


def test_a_single_problem_is_reported_as_the_whole_line() -> None:
    with pytest.raises(UserError, match=r"^file\.yaml: parallelism: must be [^\n]*, found the number 0$"):
        loaded("parallelism: 0")


def test_a_file_is_read_from_its_path(tmp_path: Path) -> None:
    file = tmp_path / "scheduler.yaml"
    file.write_text(f"{HEAD}profiles: [{{plugins: {{score: {{enabled: [{{name: Mine}}]}}}}}}]\n")
    scores = load(file, known={"Mine": {"score"}}).configuration.profiles[0].points["score"]
    assert scores[-1].name == "Mine"
    with pytest.raises(InvalidConfiguration, match=rf'^{file}: profiles\[0\].*unknown plugin "Mine"$'):
        load(file, known={})


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match=r"^cannot read the configuration .*/none: No such file or directory$"
    ):
        load(tmp_path / "none", known={})


def test_a_binary_file_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "scheduler.yaml"
    file.write_bytes(b"a: \xff\n")
    with pytest.raises(InvalidConfiguration, match="byte 3 is not UTF-8"):
        load(file, known={})


def test_sources_of_plugins_are_read_before_the_plugins_are_known(tmp_path: Path) -> None:
    file = tmp_path / "scheduler.yaml"
    file.write_text(f"{HEAD}longshore: {{plugins: [mine.py]}}\nprofiles: [{{schedulerName: 5}}]\n")
    assert plugin_sources(file) == ("mine.py",)
    file.write_text(f"{HEAD}longshore: {{plugins: mine.py}}\n")
    with pytest.raises(InvalidConfiguration, match=r"longshore\.plugins: must be a list of texts"):
        plugin_sources(file)


def test_a_custom_plugin_can_have_the_name_of_a_default_plugin_that_is_missing_here() -> None:
    text = f"{HEAD}profiles: [{{plugins: {{multiPoint: {{enabled: [{{name: GangScheduling}}]}}}}}}]\n"
    result = parse(text, source="file.yaml", known={"GangScheduling": {"permit"}, "NodeName": {"score"}})
    points = result.configuration.profiles[0].points
    assert [plugin.name for plugin in points["permit"]] == ["GangScheduling"]
    assert "NodeName" not in [plugin.name for plugin in points["score"]]
    assert result.warnings == ()
