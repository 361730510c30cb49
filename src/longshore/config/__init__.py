"""kube-scheduler's configuration file, `KubeSchedulerConfiguration` of kubescheduler.config.k8s.io/v1.

    loaded = load("scheduler.yaml", known={"MyPlugin": {"filter", "score"}})
    profile = loaded.configuration.profiles[0]
    profile.points["score"]                # (EnabledPlugin(name='TaintToleration', weight=3), …
    profile.args["NodeResourcesFit"]       # NodeResourcesFitArgs(…), defaults filled in

The file is read as kube-scheduler 1.36 reads it, with the same defaults, the same order of plugins and the
same validation. No plugin is imported for it. All problems are found at once and raised together, as
`InvalidConfiguration`.

Longshore's own settings are under the key `longshore`: `tieBreak`, `seed`, `pluginTimeout`, `plugins` and
`measurements`. kube-scheduler rejects a file with this key, as it rejects every field that it does not know.
"""

from longshore.config.arguments import (
    DefaultPreemptionArgs,
    DynamicResourcesArgs,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PluginArgs,
    PodTopologySpreadArgs,
    ResourceSpec,
    ScoringStrategy,
    ShapePoint,
    VolumeBindingArgs,
)
from longshore.config.load import default_configuration, load, parse, plugin_sources
from longshore.config.measurements import (
    MEASURES,
    MeasurementSettings,
    load_measurements,
)
from longshore.config.plugins import KUBE_SCHEDULER_PLUGINS, KubeSchedulerPlugin, PluginPoints
from longshore.config.problems import InvalidConfiguration
from longshore.config.values import (
    ClientConnection,
    Configuration,
    EnabledPlugin,
    LeaderElection,
    Loaded,
    LongshoreSettings,
    ProfileConfiguration,
)
from longshore.config.webhooks import ManagedResource, Webhook, WebhookTLS

__all__ = [
    "KUBE_SCHEDULER_PLUGINS",
    "MEASURES",
    "ClientConnection",
    "Configuration",
    "DefaultPreemptionArgs",
    "DynamicResourcesArgs",
    "EnabledPlugin",
    "InterPodAffinityArgs",
    "InvalidConfiguration",
    "KubeSchedulerPlugin",
    "LeaderElection",
    "Loaded",
    "LongshoreSettings",
    "ManagedResource",
    "MeasurementSettings",
    "NodeAffinityArgs",
    "NodeResourcesBalancedAllocationArgs",
    "NodeResourcesFitArgs",
    "PluginArgs",
    "PluginPoints",
    "PodTopologySpreadArgs",
    "ProfileConfiguration",
    "ResourceSpec",
    "ScoringStrategy",
    "ShapePoint",
    "VolumeBindingArgs",
    "Webhook",
    "WebhookTLS",
    "default_configuration",
    "load",
    "load_measurements",
    "parse",
    "plugin_sources",
]
