"""The extension points: the whole contract in one file, without behavior.

A plugin is an object with a `name` and the methods of one or more points. One decorated function is enough
for the simplest (see `longshore.framework.functions`); this is a whole class:

    class KeepsACoreFree:
        name = "KeepsACoreFree"

        def filter(self, state, pod, nodes):
            crowded = nodes.allocatable[CPU] - nodes.requested[CPU] < 1000
            yield Rejection("node(s) had less than a core free", crowded)

An attempt to schedule a pod goes through the points in this order:

    PreEnqueue → QueueSort                                                  in the queue
    PreFilter → Filter → PostFilter if nothing is left                      which nodes will do
    PreScore → Score → NormalizeScore                                       which of them is best
    Reserve → Permit                                                        the node is chosen
    PreBind → Bind → PostBind, or Unreserve if anything fails from Reserve  it is made so

Rules for every point:

- Within a point, plugins are asked in the order of the profile.
- Look at the arguments alone, so that a decision can be repeated; change none but `state`.
- Where a point returns a `Status`, None means success.
- A plugin that raises, answers nonsense or takes too long fails the attempt of this one pod, under its name.

Filter and Score come in two forms. The vectorized one answers for many nodes at once: every quantity of
`nodes` is an array with one element for each of them, and so is the answer. The plain one (`filter_node`,
`score_node`) is asked about one node at a time, and only about those that passed the vectorized filters.
"""

import enum
from collections.abc import Awaitable, Callable, Collection, Generator, Iterable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from longshore.api import Pod
from longshore.cluster import ClusterState, Nodes, OneNode, PodInfo
from longshore.cluster.arrays import Bools, Ints
from longshore.framework.cluster_events import WakeOn
from longshore.framework.cycle_state import CycleState
from longshore.framework.effects import Ask, Outcome, Tell
from longshore.framework.effects import Bind as BindEffect
from longshore.framework.status import Code, Status

MAX_SCORE = 100
# No plugin may hold a pod in Permit for longer; in seconds.
MAX_PERMIT_WAIT = 15 * 60.0


class Scope(enum.Enum):
    """What a plugin's answers about a node depend on, besides the pod: how long they may be kept.

    It is a promise. With NODE or PODS the answers are asked for once for all pods with equal namespace,
    labels, owner and spec, and then again only for nodes that changed; they must not depend on anything else.
    """

    # The node object alone.
    NODE = enum.auto()
    # The node object and the pods on it. Such a plugin must use operators only, so that it works on the
    # numbers of a single node as it does on arrays.
    PODS = enum.auto()
    # Anything: the plugin is asked each time.
    CLUSTER = enum.auto()


class Plugin(Protocol):
    """What all plugins have.

    Four more attributes are optional:

    `scope: Scope`                       of its filter and its score; CLUSTER if it is absent
    `weight: int`                        of its score, where no configuration gives one; 1 if it is absent
    `wakes_on: Sequence[WakeOn]`         events that may cure a rejection by this plugin. If it is absent, any
                                         event may; if it is empty, only a change of the pod itself
    `concerns(self, pod: PodInfo) -> bool`
                                         whether the plugin has anything to do with such pods, by namespace,
                                         labels, owner and spec alone. If not, it is passed over from
                                         PreFilter to PreBind, save PostFilter: there all are asked
    """

    @property
    def name(self) -> str:
        """What users know it by: in messages and in the configuration."""
        ...


class PreEnqueue(Plugin, Protocol):
    """Keeps a pod out of the queue until it is ready to be tried."""

    def pre_enqueue(self, pod: Pod) -> Status | None:
        """Success lets it in. With anything else the pod is gated: no attempt is made and nothing is written.

        It is asked again when an event comes that the plugin wakes on. Must be quick.
        """
        ...


class QueueSort(Plugin, Protocol):
    """The order of the queue. There is exactly one, the same in all profiles."""

    def sort_key(self, pod: Pod, since: float) -> Any:
        """The pod with the lower key is tried first. `since`: when it came, or when it last failed."""
        ...


class Forced(msgspec.Struct, frozen=True):
    """The pod goes to this node, whatever speaks against it."""

    node: str


class PreFilter(Plugin, Protocol):
    """Works out what the filter of the same plugin needs, or narrows the nodes down."""

    def pre_filter(
        self, state: CycleState, pod: PodInfo, cluster: ClusterState
    ) -> Status | Collection[str] | Forced | None:
        """Once for an attempt, before any filter.

        A collection of names: only these nodes are looked at; several plugins' are intersected. `Forced`: no
        filter is asked, and what PreFilters after this one object to is passed over. Skip: the filter of this
        plugin is not called. Unschedulable: the other PreFilters still run, so that preemption finds their
        state, then the attempt fails. UnschedulableAndUnresolvable: it fails at once.
        """
        ...


class PreFilterExtensions(Plugin, Protocol):
    """Keeps what PreFilter worked out in step with pods that are imagined on a node, or away from it.

    Needed if that depends on the pods of the cluster. Called after PreFilter on a clone of the state, when
    nominated pods and preemption are looked into. Anything but success is an error.
    """

    def add_pod(self, state: CycleState, pod: PodInfo, added: PodInfo, node: OneNode) -> Status | None: ...

    def remove_pod(
        self, state: CycleState, pod: PodInfo, removed: PodInfo, node: OneNode
    ) -> Status | None: ...


class Rejection(msgspec.Struct, frozen=True):
    """A reason in words that users see, and the nodes it holds for.

    `unresolvable`: evicting pods from the node would not help; for all of them, or node by node. `pending`:
    nor would it, for the plugin waits for something. When that happens the pod is tried at once.
    """

    reason: str
    where: Bools | bool
    unresolvable: Bools | bool = False
    pending: Bools | bool = False


class Filter(Plugin, Protocol):
    """Rules out nodes on which the pod cannot run, for all nodes at once."""

    def filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> Iterable[Rejection]:
        """Yield each reason with the nodes it holds for; a node that no reason holds for will do.

        Say only whether the node would do as things are now; which of the good ones is best is for Score. A
        node may have several reasons: they are shown in the order in which they came. Nodes that another
        filter has ruled out may be among those asked about; the first plugin that refuses a node counts.
        """
        ...


class PlainFilter(Plugin, Protocol):
    """Rules out nodes on which the pod cannot run, one by one."""

    def filter_node(self, state: CycleState, pod: PodInfo, node: OneNode) -> Status | str | None:
        """None: it will do. A string is the reason why not; a `Status` says also whether preemption helps.

        Pending says that it does not, and that the pod is to be tried at once when what the plugin waits for
        happens.
        """
        ...


class NodeStatuses(Protocol):
    """Why each node was refused, as PostFilter sees it."""

    @property
    def pre_filter(self) -> Status | None:
        """Why a PreFilter refused the pod itself, if one did: then no node was looked at."""
        ...

    def code(self, row: int) -> Code: ...

    def rows(self, code: Code) -> Ints:
        """The rows of the nodes that were refused with this code."""
        ...


# Given a pod before and after a change: None before the first of them, and after the last.
PodListener = Callable[[Pod | None, Pod | None], None]


class Handle(Protocol):
    """What the engine lets plugins do, besides answering. Factories get it."""

    @property
    def cluster(self) -> ClusterState: ...

    def now(self) -> float:
        """The time of the engine, in seconds. There is no other."""
        ...

    def filter_node(self, state: CycleState, pod: PodInfo, node: OneNode) -> Status | None:
        """What the profile's filters would say about the pod on the node as imagined.

        Nominated pods of equal or higher priority count, as they do in an attempt.
        """
        ...

    def looks_at_one_node(self, state: CycleState, pod: PodInfo) -> bool:
        """Whether all filters that have a say in the attempt look at one node at a time."""
        ...

    def add_pod(self, state: CycleState, pod: PodInfo, added: PodInfo, node: OneNode) -> Status | None:
        """Imagine one more pod on the node: in `node` and in the state of all PreFilters."""
        ...

    def remove_pod(self, state: CycleState, pod: PodInfo, removed: PodInfo, node: OneNode) -> Status | None:
        """Imagine the node without the pod, likewise."""
        ...

    def waiting_pods(self) -> Mapping[str, str]:
        """The pods held in Permit: UID to the node that they are to go to."""
        ...

    def allow(self, uid: str, plugin: str) -> None:
        """The plugin holds the waiting pod no longer; when no plugin does, it is bound."""
        ...

    def reject(self, uid: str, plugin: str, message: str) -> None:
        """The waiting pod is not to be bound; it goes back to the queue."""
        ...

    def tell(self, effect: Tell) -> None:
        """Inform people: an event, a condition or a nomination. Nothing is answered."""
        ...

    def activate(self, pods: Iterable[Pod]) -> None:
        """Try these waiting pods again at once."""
        ...

    def on_pod_change(self, listener: PodListener, plugin: str) -> None:
        """Have it called with every pod before and after each change, once the cluster state knows of it.

        For plugins with a memory of their own. What it raises, or that it takes too long, is told in an event
        of the pod under the plugin's name, if the pod waits for a node here; it is scheduled all the same.
        """
        ...


# Makes a plugin, given its arguments, or None for the defaults, and what the engine lets it do.
Factory = Callable[[Any, Handle], Plugin]


class Candidate(msgspec.Struct, frozen=True):
    """A node, and what it takes to make room there. The candidate with the lowest cost is the best."""

    node: str
    # The most important ones first.
    victims: tuple[PodInfo, ...]
    # The first number is that of violated disruption budgets.
    cost: tuple[int, int, int, int]
    # When the most important of them started; the later the better, should the costs be equal.
    started: str


class PostFilterResult(msgspec.Struct, frozen=True):
    """What was found for a pod that fits nowhere.

    `nominated`: the node that is to become free for it; empty takes an earlier nomination away, None leaves
    it as it is. `victims` are evicted. `candidates` are all that were found, the nominated node among them:
    extenders may rule out some.
    """

    status: Status | None = None
    nominated: str | None = None
    victims: Sequence[PodInfo] = ()
    candidates: Sequence[Candidate] = ()


class PostFilter(Plugin, Protocol):
    """Looks for a way out when no node will do."""

    def post_filter(self, state: CycleState, pod: PodInfo, statuses: NodeStatuses) -> PostFilterResult:
        """Called when no node is left, also after PreFilter said Unschedulable.

        Success ends the search: the attempt still fails, but the pod is nominated and the victims are
        evicted. Unschedulable goes on to the next plugin; UnschedulableAndUnresolvable and Error end it.
        """
        ...


class PreScore(Plugin, Protocol):
    """Works out what the score of the same plugin needs."""

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> Status | None:
        """Once for an attempt, with the nodes that passed. Skip: the score of this plugin is not called."""
        ...


class Score(Plugin, Protocol):
    """Ranks the nodes that passed all filters, all at once.

    Called only if more than one node passed; with a single one there is nothing to rank.
    """

    def score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> Ints | int:
        """A whole number for each node, the higher the better, or one number if it is the same for all.

        From 0 to MAX_SCORE, unless the plugin normalizes. The profile's weight is applied afterwards.
        """
        ...


class PlainScore(Plugin, Protocol):
    """Ranks the nodes that passed all filters, one by one."""

    def score_node(self, state: CycleState, pod: PodInfo, node: OneNode) -> int:
        """As in Score."""
        ...


class NormalizeScore(Plugin, Protocol):
    """Brings the scores of the same plugin into the range."""

    def normalize(self, state: CycleState, pod: PodInfo, scores: Ints, nodes: Nodes) -> Ints:
        """Given the scores of all nodes that passed: as many numbers from 0 to MAX_SCORE."""
        ...


class Reserve(Plugin, Protocol):
    """For plugins with a memory of their own: the pod will take the node, or will not after all."""

    def reserve(self, state: CycleState, pod: PodInfo, node: str) -> Status | None:
        """Called when the node is chosen. A rejection makes the pod unschedulable, by this plugin."""
        ...

    def unreserve(self, state: CycleState, pod: PodInfo, node: str) -> None:
        """Called if anything fails from Reserve on, for all plugins in reverse order.

        Also for those whose `reserve` was never called, so it must do nothing then, or if called twice.
        """
        ...


class Wait(msgspec.Struct, frozen=True):
    """Hold the pod until `Handle.allow` or `Handle.reject`, for at most this many seconds."""

    seconds: float


class Permit(Plugin, Protocol):
    """The last word before the pod is bound."""

    def permit(self, state: CycleState, pod: PodInfo, node: str) -> Status | Wait | None:
        """Success approves, a rejection denies, `Wait` holds. When its time is over the pod is rejected.

        A held pod keeps its room on the node. Several plugins may hold it: all of them have to allow it.
        """
        ...


# What PreBind, Bind and PostBind may be: a function that answers at once; a generator that yields effects and
# is resumed with their outcome; or `async def`, which runs beside the scheduler and may wait for anything.
Answer = Status | None | Generator[Ask, Outcome, Status | None] | Awaitable[Status | None]


class PreBind(Plugin, Protocol):
    """Work that has to be done before the pod can run on the node, such as providing its volumes."""

    def pre_bind(self, state: CycleState, pod: PodInfo, node: str) -> Answer:
        """Anything but success fails the attempt; it is repeated after a while.

        Should a more important pod need the room meanwhile, this one gives way: a generator is closed, what
        an `async def` answers later is passed over, and the plugins are told to unreserve.

        A plugin may also have `pre_bind_pre_flight(state, pod, node) -> Status | None`: Skip there means that
        there is nothing to do for this pod, so it need not be told that it is expected on the node.
        """
        ...


class Bind(Plugin, Protocol):
    """Assigns the pod to the node."""

    def bind(self, state: CycleState, pod: PodInfo, node: str) -> "Answer | BindEffect":
        """Skip leaves it to the next plugin; the first that does not decides.

        A plugin may return the effect `Bind` instead of doing the work itself. Then the scheduler treats each
        outcome as it deserves: it drops a pod that is gone, retries without a report if someone else bound
        the pod, and keeps the room on the node if the answer may have been lost.
        """
        ...


class PostBind(Plugin, Protocol):
    """Hears of pods that were bound."""

    def post_bind(self, state: CycleState, pod: PodInfo, node: str) -> Answer: ...


class EnqueueExtensions(Plugin, Protocol):
    """Says which events may cure a rejection by this plugin (see `Plugin`)."""

    @property
    def wakes_on(self) -> Sequence[WakeOn]: ...
