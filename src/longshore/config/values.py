"""The configuration as values: defaults are filled in, plugins are resolved, and everything is checked."""

from collections.abc import Mapping

from longshore.config.arguments import PluginArgs
from longshore.config.base import Settings
from longshore.config.measurements import MeasurementSettings
from longshore.config.webhooks import Webhook
from longshore.framework.profile import TieBreak


class EnabledPlugin(Settings):
    """A plugin at an extension point. `weight` is at least 1 at `score`, and 0 everywhere else."""

    name: str
    weight: int = 0


class ProfileConfiguration(Settings):
    """The plugins of one scheduler name and their arguments.

    `points` has all extension points, each with its plugins in the order in which they are called. `args` has
    the arguments of every default plugin that takes any, and for other plugins the mapping in the file.
    """

    scheduler_name: str
    # 0 means all nodes. A profile that leaves it out has the value of the whole configuration.
    percentage_of_nodes_to_score: int
    points: Mapping[str, tuple[EnabledPlugin, ...]]
    args: Mapping[str, PluginArgs]


class LeaderElection(Settings):
    """Settings of leader election. Durations are in seconds."""

    leader_elect: bool = True
    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0
    resource_lock: str = "leases"
    resource_name: str = "kube-scheduler"
    resource_namespace: str = "kube-system"


class ClientConnection(Settings):
    kubeconfig: str = ""
    accept_content_types: str = ""
    content_type: str = "application/vnd.kubernetes.protobuf"
    qps: float = 50.0
    burst: int = 100


class LongshoreSettings(Settings):
    """The settings under `longshore`, a key that kube-scheduler rejects."""

    tie_break: TieBreak = "random"
    seed: int = 0
    # The longest time in seconds that a call of a plugin may take.
    plugin_timeout: float = 1.0
    # The sources of more plugins: `module:attribute`, or the path of a Python file.
    plugins: tuple[str, ...] = ()
    # None: agents use the annotations of nodes, and without agents nothing is measured.
    measurements: MeasurementSettings | None = None


class Configuration(Settings):
    """A KubeSchedulerConfiguration. `webhooks`, from `extenders:`, are in the order of the calls."""

    profiles: tuple[ProfileConfiguration, ...]
    webhooks: tuple[Webhook, ...] = ()
    leader_election: LeaderElection = LeaderElection()
    client_connection: ClientConnection = ClientConnection()
    pod_initial_backoff_seconds: int = 1
    pod_max_backoff_seconds: int = 10
    # 0 means all nodes. In kube-scheduler it means a share that shrinks with the size of the cluster.
    percentage_of_nodes_to_score: int = 0
    # Accepted because kube-scheduler has them. Longshore does not use them.
    parallelism: int = 16
    enable_profiling: bool = True
    enable_contention_profiling: bool = True
    delay_cache_until_active: bool = False
    longshore: LongshoreSettings = LongshoreSettings()


class Loaded(Settings):
    """A valid configuration, and warnings for its author, one line each.

    `plugins` has the names of the plugins that the file enables or disables anywhere. `arguments` has the
    path of a plugin's arguments in the file, by the path of the profile and the plugin's name.
    """

    configuration: Configuration
    warnings: tuple[str, ...] = ()
    plugins: frozenset[str] = frozenset()
    arguments: Mapping[tuple[str, str], str] = {}
