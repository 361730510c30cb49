"""The extension points of the scheduling cycle: what a plugin implements, and nothing else.

A plugin is an object with a `name` and the methods of one or more points. A single decorated function is
enough for the simplest plugins (see `longshore.framework.functions`). This is a complete class:

    class KeepsACoreFree:
        name = "KeepsACoreFree"

        def filter(self, state, pod, nodes):
            crowded = nodes.allocatable[CPU] - nodes.requested[CPU] < 1000
            yield Rejection("node(s) had less than a core free", crowded)

An attempt to schedule a pod goes through the points in this order:

    PreEnqueue → QueueSort                                                  the queue
    PreFilter → Filter → PostFilter if no node is left                      find the nodes that fit
    PreScore → Score → NormalizeScore                                       find the best of them
    Reserve → Permit                                                        settle on the node
    PreBind → Bind → PostBind, or Unreserve if anything fails from Reserve  assign the pod to it

These rules hold at every point:

- Within a point, plugins are called in the order in which the profile lists them.
- A plugin decides by its arguments alone, so that a decision can be repeated. It must not change any of them
  except `state`.
- Where a method returns a `Status`, None means success.
- A plugin that raises, returns an invalid answer or takes too long fails the attempt of this one pod. The
  plugin's name is in the pod's event and condition.

Filter and Score come in two forms. The vectorized form answers for many nodes in one call: every quantity of
`nodes` is an array with one element for each node, and so is the answer. The plain form (`filter_node`,
`score_node`) is called for one node at a time, and only for nodes that passed the vectorized filters.

`longshore.framework.handle` declares what a plugin can ask of the engine, `longshore.framework.reads` how it
declares which annotations and conditions of pods it reads, `longshore.framework.agents` what makes a plugin a
scheduler agent, and `longshore.framework.controllers` what runs next to the scheduling of pods.
"""

import enum
from collections.abc import Awaitable, Collection, Generator, Iterable, Sequence
from typing import Any, Protocol, runtime_checkable

import msgspec

from longshore.api import Pod
from longshore.cluster import ClusterState, Nodes, OneNode, PodInfo
from longshore.cluster.arrays import Bools, Ints
from longshore.framework.cycle_state import CycleState
from longshore.framework.effects import Ask, Outcome
from longshore.framework.effects import Bind as BindEffect
from longshore.framework.status import Code, Status

MAX_SCORE = 100
# The longest time, in seconds, that a plugin can hold a pod in Permit.
MAX_PERMIT_WAIT = 15 * 60.0


class Scope(enum.Enum):
    """What a plugin's answer about a node depends on, apart from the pod: how long answers are kept.

    The scope is a promise. With NODE or PODS, the engine asks once for all pods with equal namespace, labels,
    owner and spec, and asks again only about nodes that have changed since. The answer must not depend on
    anything else, such as the pod's annotations, its status or the time.
    """

    # The answer depends on the node object alone.
    NODE = enum.auto()
    # The answer depends on the node object and on the pods on it. The plugin must use operators only, because
    # it is called with the numbers of a single node as well as with arrays.
    PODS = enum.auto()
    # The answer may depend on anything. The plugin is called in each attempt.
    CLUSTER = enum.auto()


class Plugin(Protocol):
    """What all plugins have in common.

    A plugin may have these attributes too:

    `scope: Scope`                 The scope of its Filter and its Score. The default is CLUSTER.
    `weight: int`                  The weight of its Score where no configuration sets one. The default is 1.
    `wakes_on: Sequence[WakeOn]`   The events that may make a pod schedulable that this plugin rejected. By
                                   default any event may. If it is empty, only a change of the pod itself may.
    `reads: Reads`                 The annotations and conditions of pods that the plugin reads; by default
                                   none. Reading one that no plugin declares raises `UndeclaredRead`.
    """

    @property
    def name(self) -> str:
        """The name of the plugin in messages, metrics and the configuration."""
        ...


@runtime_checkable
class Concerns(Plugin, Protocol):
    """A plugin that has to do with some pods only. It is skipped for the others."""

    def concerns(self, pod: PodInfo) -> bool:
        """Whether the plugin has anything to do with pods of this namespace, labels, owner and spec.

        If not, it is skipped at every point from PreFilter to PreBind except PostFilter. The plugin must not
        look at anything else of the pod, because it is called once for all pods that are alike.
        """
        ...


class PreEnqueue(Plugin, Protocol):
    """Keeps a pod out of the queue until it is ready to be scheduled."""

    def pre_enqueue(self, pod: Pod) -> Status | None:
        """Return success to let the pod into the queue.

        Any other status gates the pod: no attempt is made, and nothing is written to the pod. The plugin is
        called again after an event that it wakes on. It must be quick.
        """
        ...


class QueueSort(Plugin, Protocol):
    """Orders the queue. A scheduler has exactly one such plugin, the same in all profiles."""

    def sort_key(self, pod: Pod, since: float) -> Any:
        """Return the pod's key. The pod with the lowest key is scheduled first.

        `since` is the time at which the pod entered the queue or at which its last attempt failed. Equal
        arguments must give equal keys.
        """
        ...


class Forced(msgspec.Struct, frozen=True):
    """The one node that the pod must go to. No filter is called."""

    node: str


class PreFilter(Plugin, Protocol):
    """Prepares the Filter of the same plugin, or restricts the pod to some of the nodes."""

    def pre_filter(
        self, state: CycleState, pod: PodInfo, cluster: ClusterState
    ) -> Status | Collection[str] | Forced | None:
        """Called once in an attempt, before any filter.

        A collection of node names restricts the attempt to these nodes; the collections of several plugins
        are intersected. `Forced` sends the pod to one node: no filter is called, and rejections by later
        PreFilters are ignored. Skip means that the Filter of this plugin need not be called. After
        Unschedulable the other PreFilters still run, because preemption needs what they prepare, and then the
        attempt fails. UnschedulableAndUnresolvable fails the attempt at once.
        """
        ...


@runtime_checkable
class PreFilterExtensions(Plugin, Protocol):
    """Keeps what PreFilter prepared up to date while pods are added to a node, or removed, hypothetically.

    A PreFilter needs both methods if what it prepares depends on the pods in the cluster. They are called
    after PreFilter, with a clone of its state, while nominated pods and preemption are evaluated. Any status
    except success is an error.
    """

    def add_pod(self, state: CycleState, pod: PodInfo, added: PodInfo, node: OneNode) -> Status | None: ...

    def remove_pod(
        self, state: CycleState, pod: PodInfo, removed: PodInfo, node: OneNode
    ) -> Status | None: ...


class Rejection(msgspec.Struct, frozen=True):
    """A reason, in words that users read, and the nodes that it applies to.

    `unresolvable` says that evicting pods from the node would not help, for all of the nodes or for each.
    `pending` says that evicting pods would not help because the plugin waits for an event. The pod is
    scheduled without backoff when that event occurs.
    """

    reason: str
    where: Bools | bool
    unresolvable: Bools | bool = False
    pending: Bools | bool = False


class Filter(Plugin, Protocol):
    """Rejects the nodes on which the pod cannot run, in one call for all nodes."""

    def filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> Iterable[Rejection]:
        """Yield each reason with the nodes that it applies to. A node without any reason fits.

        The answer must only say whether the pod can run on a node as it is now; which node is best is for
        Score to say. A node may have several reasons, which users see in the order in which they are yielded.
        `nodes` may contain nodes that another filter has rejected; a node counts as rejected by the first
        plugin that rejects it.
        """
        ...


class PlainFilter(Plugin, Protocol):
    """Rejects the nodes on which the pod cannot run, in one call for each node."""

    def filter_node(self, state: CycleState, pod: PodInfo, node: OneNode) -> Status | str | None:
        """Return None if the node fits, or else the reason why not.

        A `Status` says more than a string: UnschedulableAndUnresolvable that evicting pods would not help,
        and Pending that the pod should be scheduled, without backoff, when an event occurs for which the
        plugin waits.
        """
        ...


class NodeStatuses(Protocol):
    """Why each node was rejected. PostFilter gets it."""

    @property
    def pre_filter(self) -> Status | None:
        """The status of the PreFilter that rejected the pod, if one did. Then no node was examined."""
        ...

    def code(self, row: int) -> Code:
        """Return the code with which the node in this row was rejected."""
        ...

    def rows(self, code: Code) -> Ints:
        """Return the rows of the nodes that were rejected with this code."""
        ...


class Candidate(msgspec.Struct, frozen=True):
    """A node, and the pods whose eviction would make room there. The one with the lowest cost is best."""

    node: str
    # The most important pods come first.
    victims: tuple[PodInfo, ...]
    # The first number is how many disruption budgets would be violated.
    cost: tuple[int, int, int, int]
    # The time at which the most important victim started. Among equal costs the latest time is best.
    started: str


class PostFilterResult(msgspec.Struct, frozen=True):
    """What a PostFilter found for a pod that fits no node.

    `nominated` is the node that will become free for the pod; an empty name withdraws an earlier nomination,
    and None leaves it unchanged. The `victims` are evicted. `candidates` are all that were found, including
    the nominated node: HTTP extenders may exclude some of them.
    """

    status: Status | None = None
    nominated: str | None = None
    victims: Sequence[PodInfo] = ()
    candidates: Sequence[Candidate] = ()


class PostFilter(Plugin, Protocol):
    """Makes room for a pod that fits no node, for example by preemption."""

    def post_filter(self, state: CycleState, pod: PodInfo, statuses: NodeStatuses) -> PostFilterResult:
        """Called when no node is left, also if a PreFilter returned Unschedulable.

        With success, the pod is nominated, the victims are evicted and no further plugin is called; the
        attempt fails nevertheless. After Unschedulable the next plugin is called. Any other status ends the
        search.
        """
        ...


class PreScore(Plugin, Protocol):
    """Prepares the Score of the same plugin."""

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> Status | None:
        """Called once in an attempt, with the nodes that fit.

        Skip means that the Score of this plugin need not be called.
        """
        ...


class Score(Plugin, Protocol):
    """Ranks the nodes that fit, in one call for all. It is called only if more than one node fits."""

    def score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> Ints | int:
        """Return an integer for each node, or a single integer if it is the same for all. Higher is better.

        Scores range from 0 to MAX_SCORE unless the plugin normalizes them. They are multiplied by the weight
        of the plugin afterwards.
        """
        ...


class PlainScore(Plugin, Protocol):
    """Ranks the nodes that fit, in one call for each node."""

    def score_node(self, state: CycleState, pod: PodInfo, node: OneNode) -> int:
        """Return the score of one node, in the range that `Score` describes."""
        ...


class NormalizeScore(Plugin, Protocol):
    """Scales the scores of the same plugin to the range from 0 to MAX_SCORE."""

    def normalize(self, state: CycleState, pod: PodInfo, scores: Ints, nodes: Nodes) -> Ints:
        """Return as many scores, from 0 to MAX_SCORE, given the scores of all nodes that fit."""
        ...


class Reserve(Plugin, Protocol):
    """Updates the state of a plugin that counts what pods use, before a pod is bound."""

    def reserve(self, state: CycleState, pod: PodInfo, node: str) -> Status | None:
        """Called when the node is chosen. A rejection makes the pod unschedulable."""
        ...

    def unreserve(self, state: CycleState, pod: PodInfo, node: str) -> None:
        """Called if anything fails from Reserve on, for all Reserve plugins in reverse order.

        It is also called for plugins whose `reserve` was not called, and may be called twice. It must do
        nothing then, and it must not fail.
        """
        ...


class Wait(msgspec.Struct, frozen=True):
    """Hold the pod until `Handle.allow` or `Handle.reject` is called, for at most this many seconds."""

    seconds: float


class Permit(Plugin, Protocol):
    """Approves, rejects or delays the binding of a pod."""

    def permit(self, state: CycleState, pod: PodInfo, node: str) -> Status | Wait | None:
        """Return success to approve, a rejection to reject, or `Wait` to hold the pod.

        A held pod keeps its room on the node. If several plugins hold it, all of them have to allow it. A pod
        whose time runs out is rejected.
        """
        ...


# What PreBind, Bind and PostBind may be: a function that answers at once; a generator that yields effects and
# is resumed with the outcome of each; or an `async def`, which runs concurrently with the scheduler and may
# await anything.
Answer = Status | None | Generator[Ask, Outcome, Status | None] | Awaitable[Status | None]


class PreBind(Plugin, Protocol):
    """Does the work that must be finished before the pod is bound, such as provisioning a volume."""

    def pre_bind(self, state: CycleState, pod: PodInfo, node: str) -> Answer:
        """Return success when the work is finished. Any other status fails the attempt; it is retried later.

        If a pod of higher priority needs the room in the meantime, this attempt is canceled: a generator is
        closed, the answer of an `async def` is ignored, and Unreserve is called.
        """
        ...


@runtime_checkable
class PreBindPreFlight(PreBind, Protocol):
    """A PreBind that can say beforehand whether it has work to do."""

    def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node: str) -> Status | None:
        """Return Skip if PreBind has nothing to do for this pod.

        `pre_bind` is not called then. A pod that all PreBind plugins skip, and no Permit plugin holds, is
        bound without being nominated to the node first. Any status except success and Skip fails the attempt.
        """
        ...


class Bind(Plugin, Protocol):
    """Assigns the pod to the node."""

    def bind(self, state: CycleState, pod: PodInfo, node: str) -> "Answer | BindEffect":
        """Bind the pod, or return Skip to leave it to the next plugin.

        The first plugin that does not return Skip decides how the attempt ends. A plugin may return the
        effect `Bind` instead of doing the work itself. Then the scheduler drops a pod that is gone, retries
        without a report if something else bound the pod, and keeps the room if the answer may be lost.
        """
        ...


class PostBind(Plugin, Protocol):
    """Learns that a pod was bound."""

    def post_bind(self, state: CycleState, pod: PodInfo, node: str) -> Answer:
        """Called after the pod was bound. The answer has no effect."""
        ...
