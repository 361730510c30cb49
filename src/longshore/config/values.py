"""The configuration as values: all defaults filled in, all plugins resolved, nothing left to check."""

from collections.abc import Mapping

from longshore.config.arguments import PluginArgs
from longshore.config.base import Settings
from longshore.config.measurements import MeasurementSettings
from longshore.config.webhooks import Webhook
from longshore.framework.profile import TieBreak


class EnabledPlugin(Settings):
    """A plugin at a point. `weight` is 1 or more at `score` and 0 everywhere else."""

    name: str
    weight: int = 0


class ProfileConfiguration(Settings):
    """Plugins and arguments of one scheduler name.

    `points` has every extension point, with the plugins in the order in which they are called; `args` the
    arguments of every default plugin that takes any, and of others what the file says, as it stands there.
    """

    scheduler_name: str
    # 0: all nodes. A profile that leaves it out has the number of the whole configuration here.
    percentage_of_nodes_to_score: int
    points: Mapping[str, tuple[EnabledPlugin, ...]]
    args: Mapping[str, PluginArgs]


class LeaderElection(Settings):
    """Durations in seconds."""

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
    """What the file says under `longshore`, a key that kube-scheduler itself refuses."""

    tie_break: TieBreak = "random"
    seed: int = 0
    # Seconds that one call of a plugin may take.
    plugin_timeout: float = 1.0
    # Where further plugins come from: `module:attribute` or the path of a Python file.
    plugins: tuple[str, ...] = ()
    # None: only what nodes say of themselves, and only if a plugin asks for it.
    measurements: MeasurementSettings | None = None


class Configuration(Settings):
    """A KubeSchedulerConfiguration. `webhooks`, from `extenders:`, are in the order of the calls."""

    profiles: tuple[ProfileConfiguration, ...]
    webhooks: tuple[Webhook, ...] = ()
    leader_election: LeaderElection = LeaderElection()
    client_connection: ClientConnection = ClientConnection()
    pod_initial_backoff_seconds: int = 1
    pod_max_backoff_seconds: int = 10
    # 0: all nodes, where kube-scheduler takes a share that shrinks with the size of the cluster.
    percentage_of_nodes_to_score: int = 0
    # Read for kube-scheduler's sake; Longshore does not need them.
    parallelism: int = 16
    enable_profiling: bool = True
    enable_contention_profiling: bool = True
    delay_cache_until_active: bool = False
    longshore: LongshoreSettings = LongshoreSettings()


class Loaded(Settings):
    """A valid configuration, and what its author should know about it, one line each.

    `plugins` are those that it enables or disables by name, somewhere; `arguments` has the paths of what
    it gives to plugins as arguments, by the path of the profile and the name.
    """

    configuration: Configuration
    warnings: tuple[str, ...] = ()
    plugins: frozenset[str] = frozenset()
    arguments: Mapping[tuple[str, str], str] = {}
