"""Reads a configuration file as a whole."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import get_args

import msgspec

from longshore.config import document
from longshore.config.arguments import NodeResourcesFitArgs
from longshore.config.base import API_VERSION
from longshore.config.fields import INT64_MAX, Fields, read_mapping
from longshore.config.measurements import read_measurements
from longshore.config.plugins import PluginPoints
from longshore.config.problems import InvalidConfiguration, Report, found, quoted
from longshore.config.profiles import (
    DEFAULT_SCHEDULER_NAME,
    default_profile,
    read_profiles,
)
from longshore.config.values import (
    ClientConnection,
    Configuration,
    LeaderElection,
    Loaded,
    LongshoreSettings,
    ProfileConfiguration,
)
from longshore.config.webhooks import Webhook, read_webhooks
from longshore.framework.profile import TieBreak

_KIND = "KubeSchedulerConfiguration"
_FIT = "NodeResourcesFit"
_PLUGIN_SOURCE = re.compile(r"[^\W\d][\w.]*:[^\W\d][\w.]*|.+\.py")
_TIE_BREAKS: tuple[TieBreak, ...] = get_args(TieBreak)
# Their fields and plugins are those of v1, except for some that v1 removed.
_OLDER = tuple(f"kubescheduler.config.k8s.io/{version}" for version in ("v1beta2", "v1beta3"))
# Fields of v1beta2 that many files still have.
_REMOVED = ("healthzBindAddress", "metricsBindAddress")


def default_configuration(scheduler_name: str = "longshore") -> Configuration:
    """Return the configuration without a file: the default plugins and a lease under one scheduler name."""
    return Configuration(
        profiles=(default_profile(scheduler_name),),
        leader_election=LeaderElection(resource_name=scheduler_name),
    )


def load(path: str | Path, *, known: Mapping[str, PluginPoints]) -> Loaded:
    """Read a file. `known` has the extension points of the plugins that are not kube-scheduler's, by name."""
    return parse(document.text(path), source=str(path), known=known)


def parse(text: str, *, source: str, known: Mapping[str, PluginPoints] | None = None) -> Loaded:
    """Read a text. `source` is the name that problems give it."""
    report = Report()
    content = _content(text, source, report)
    configuration = read_mapping(content, "", report, lambda fields: _configuration(fields, known or {}))
    if report.problems:
        raise InvalidConfiguration(source, report.problems, report.warnings)
    return Loaded(configuration, tuple(report.warnings), frozenset(report.plugins), report.arguments)


def plugin_sources(path: str | Path) -> tuple[str, ...]:
    """Return the sources of plugins in the file, which have to be known before the rest of it is read.

    Problems outside of `longshore` are left to `load`.
    """
    content = _content(document.text(path), str(path), Report())
    report = Report()
    sources = Fields(content, "", report).nested("longshore", _longshore).plugins
    if report.problems:
        raise InvalidConfiguration(str(path), report.problems)
    return sources


def _content(text: str, source: str, report: Report) -> dict[str, object]:
    """Return the document, if its kind and version are the right ones."""
    content = document.read(text, source, report)
    if not isinstance(content, dict):
        raise InvalidConfiguration(source, [f"must be a {_KIND}, found {found(content)}"])
    problems = []
    version, kind = content.get("apiVersion"), content.get("kind")
    if version in _OLDER:
        read_as = f"{version} is read as {API_VERSION}, with its default plugins and weights"
        report.warning("apiVersion", f"{read_as}; write {API_VERSION}")
    elif version != API_VERSION:
        old = isinstance(version, str) and version.startswith("kubescheduler.config.k8s.io/")
        why = "; older versions differ: see the Kubernetes documentation for what to change" if old else ""
        problems.append(f"apiVersion: must be {API_VERSION}, found {found(version)}{why}")
    if kind != _KIND:
        problems.append(f"kind: must be {_KIND}, found {found(kind)}")
    if problems:
        raise InvalidConfiguration(source, problems)
    return content


def _configuration(fields: Fields, known: Mapping[str, PluginPoints]) -> Configuration:
    fields.text("apiVersion")
    fields.text("kind")
    for name in _REMOVED:
        fields.refuse(name, "was removed from the file in v1; remove it")
    percentage = fields.integer("percentageOfNodesToScore", at_least=0, at_most=100)
    profiles = read_profiles(fields, known, percentage)
    webhooks = read_webhooks(fields)
    initial = fields.integer("podInitialBackoffSeconds", 1, at_least=1, at_most=INT64_MAX)
    longest = fields.integer("podMaxBackoffSeconds", 10, at_least=1, at_most=INT64_MAX)
    if longest < initial:
        fields.problem("podMaxBackoffSeconds", f"must be at least podInitialBackoffSeconds, {initial}")
    profiling = fields.flag("enableProfiling", True)
    election = fields.nested("leaderElection", _leader_election)
    _warn_of_shared_lease(fields, election, profiles)
    return Configuration(
        profiles=_without_ignored(fields, profiles, webhooks),
        webhooks=webhooks,
        leader_election=election,
        client_connection=fields.nested("clientConnection", _client_connection),
        pod_initial_backoff_seconds=initial,
        pod_max_backoff_seconds=longest,
        percentage_of_nodes_to_score=percentage,
        parallelism=fields.integer("parallelism", 16, at_least=1),
        enable_profiling=profiling,
        enable_contention_profiling=fields.flag("enableContentionProfiling", profiling),
        delay_cache_until_active=fields.flag("delayCacheUntilActive"),
        longshore=fields.nested("longshore", _longshore),
    )


def _leader_election(fields: Fields) -> LeaderElection:
    election = LeaderElection(
        leader_elect=fields.flag("leaderElect", True),
        lease_duration=fields.duration("leaseDuration", 15.0) or 15.0,
        renew_deadline=fields.duration("renewDeadline", 10.0) or 10.0,
        retry_period=fields.duration("retryPeriod", 2.0) or 2.0,
        resource_lock=fields.text("resourceLock", "leases"),
        resource_name=fields.text("resourceName", "kube-scheduler"),
        resource_namespace=fields.text("resourceNamespace", "kube-system"),
    )
    if not election.leader_elect:
        return election
    for name, duration in (
        ("leaseDuration", election.lease_duration),
        ("renewDeadline", election.renew_deadline),
        ("retryPeriod", election.retry_period),
    ):
        if duration < 0:
            fields.problem(name, "must be greater than 0s")
    if election.lease_duration <= election.renew_deadline:
        fields.problem("leaseDuration", f"must be greater than renewDeadline, {election.renew_deadline:g}s")
    if election.resource_lock != "leases":
        fields.problem("resourceLock", f"must be leases, found {quoted(election.resource_lock)}")
    return election


def _client_connection(fields: Fields) -> ClientConnection:
    return ClientConnection(
        kubeconfig=fields.text("kubeconfig"),
        accept_content_types=fields.text("acceptContentTypes"),
        content_type=fields.text("contentType", "application/vnd.kubernetes.protobuf"),
        qps=fields.number("qps", 50.0),
        burst=fields.integer("burst", 100, at_least=0) or 100,
    )


def _longshore(fields: Fields) -> LongshoreSettings:
    timeout = fields.duration("pluginTimeout", 1.0)
    if timeout <= 0:
        fields.problem("pluginTimeout", "must be greater than 0s")
    return LongshoreSettings(
        tie_break=fields.choice("tieBreak", _TIE_BREAKS) or "random",
        seed=fields.integer("seed", at_least=-INT64_MAX, at_most=INT64_MAX),
        plugin_timeout=timeout,
        plugins=fields.texts(
            "plugins",
            "module:attribute or the path of a .py file",
            lambda text: bool(_PLUGIN_SOURCE.fullmatch(text)),
        ),
        measurements=fields.optional("measurements", read_measurements),
    )


def _warn_of_shared_lease(
    fields: Fields, election: LeaderElection, profiles: tuple[ProfileConfiguration, ...]
) -> None:
    """Warn if the scheduler would wait forever for the lease of the kube-scheduler next to it."""
    lease = (election.resource_namespace, election.resource_name)
    next_to_it = all(profile.scheduler_name != DEFAULT_SCHEDULER_NAME for profile in profiles)
    if election.leader_elect and lease == ("kube-system", "kube-scheduler") and next_to_it:
        own = "this is the lease of kube-scheduler; specify another one to run next to it"
        fields.report.warning("leaderElection.resourceName", own)


def _without_ignored(
    fields: Fields, profiles: tuple[ProfileConfiguration, ...], webhooks: tuple[Webhook, ...]
) -> tuple[ProfileConfiguration, ...]:
    """Make NodeResourcesFit ignore the resources that only extenders manage, instead of those in its list."""
    ignored = tuple(
        resource.name
        for webhook in webhooks
        for resource in webhook.managed_resources
        if resource.ignored_by_scheduler
    )
    if not ignored:
        return profiles
    results = []
    for index, profile in enumerate(profiles):
        args = profile.args[_FIT]
        if not isinstance(args, NodeResourcesFitArgs):
            raise TypeError(f"the arguments of {_FIT} are {type(args)}")
        if set(args.ignored_resources) - set(ignored):
            replaced = "the resources that extenders manage replace the ignoredResources of NodeResourcesFit"
            fields.report.warning(f"profiles[{index}].pluginConfig", replaced)
        new = msgspec.structs.replace(args, ignored_resources=ignored)
        results.append(msgspec.structs.replace(profile, args={**profile.args, _FIT: new}))
    return tuple(results)
