"""What an extender answers: the routes of a kube-scheduler's extender/v1, and those of probes and Prometheus.

    POST /scheduler/predicates/VERB, /scheduler/priorities/VERB     the agents
    POST /scheduler/bind, /scheduler/preemption                     refused; echoed
    GET  /version, /healthz, /livez, /readyz, /metrics

No sockets here: a request comes as method, path and body, and goes as an answer. Whatever a body holds and
whatever an agent does, there is one.
"""

import time
from collections.abc import Callable, Mapping
from functools import lru_cache, partial

import msgspec
import structlog
from prometheus_client import CollectorRegistry, generate_latest

from longshore import __version__
from longshore.agents import annotations
from longshore.api import Pod
from longshore.cluster import ClusterState
from longshore.cluster.measures import MAX_AGE, SETTLE, Measured
from longshore.engine.decision.shapes import LARGEST_KEPT
from longshore.engine.plugin_failure import PluginFailure
from longshore.serve.extender import wire
from longshore.serve.extender.agent_engine import Served
from longshore.serve.extender.metrics import Traffic, registry_of
from longshore.serve.extender.node_view import Asked, Question, SentNodes, View
from longshore.serve.extender.unknown_nodes import UnknownNodes

log = structlog.get_logger()

JSON = "application/json"
TEXT = "text/plain; charset=utf-8"
NO_BIND = "this extender does not bind pods: leave bindVerb empty in its entry, and kube-scheduler binds them"
STANDALONE = (
    "this extender runs without a cluster (--standalone) and knows no node by its name: "
    "set nodeCacheCapable: false in its entry, or start it with a cluster"
)
NO_CERTIFICATE = (
    "this needs a certificate of the authority in --client-ca-file: "
    "kube-scheduler shows the one in the tlsConfig of its entry"
)
# What anybody may ask where callers have to show certificates.
OPEN = frozenset({"/version", "/healthz", "/livez", "/readyz"})
_PREFIX = "/scheduler/"
# Pods remembered: filter and prioritize ask about the same one.
_PODS = 64


class Said(msgspec.Struct, frozen=True, gc=False):
    """What an agent was asked about, and how many of the nodes are left, or have a score."""

    pod: str
    nodes: int
    left: int


class Reply(msgspec.Struct, frozen=True, gc=False):
    status: int
    body: bytes
    content_type: str = JSON
    # What the URL may be asked with, if it was asked otherwise.
    allow: str = ""
    # A node is not known here, perhaps not yet: the answer may be another in a moment.
    early: bool = False
    # Whoever asked hears of an error, whatever the status is: Filter has a place for it in what it answers.
    failed: bool = False
    said: Said | None = None


_EARLY = Reply(200, b"", early=True)


class Verbs(msgspec.Struct, frozen=True):
    """By verb, the profile whose one plugin answers."""

    predicates: Mapping[str, str]
    priorities: Mapping[str, str]


Answer = Callable[[bytes], Reply]
# Has something done once the answer is on its way: whoever asked waits for nothing else.
Later = Callable[[Callable[[], None]], object]


def at_once(act: Callable[[], None]) -> None:
    act()


def assemble(
    served: Served,
    *,
    cached: bool,
    read_load: bool = True,
    max_age: float = MAX_AGE,
    settle: float = SETTLE,
    hindrance: Callable[[], str] = lambda: "",
    later: Later = at_once,
    trace: bool = False,
) -> "Extender":
    """An extender for these agents; `cached` if the engine follows a cluster, else it knows no names.

    `read_load`: nodes that are sent tell of their load themselves; values without a source of their own grow
    old after `max_age` seconds, and pods show in them after `settle` seconds.
    """
    engine, traffic = served.engine, Traffic()

    def read(cluster: ClusterState) -> None:
        cluster.measures.max_age = max_age
        cluster.measures.settle = settle
        annotations.read_congestion(cluster)
        annotations.read_requested(cluster)
        if read_load:
            annotations.read_load(cluster)

    return Extender(
        Verbs(served.predicates, served.priorities),
        known=View(engine.cluster, engine.chooser, fine_scores=served.fine_scores) if cached else None,
        sent=SentNodes(
            engine.profiles.__getitem__,
            read,
            watched=engine.cluster if cached else None,
            fine_scores=served.fine_scores,
        ),
        kept=engine.kept,
        traffic=traffic,
        registry=registry_of(traffic, engine.cluster),
        hindrance=hindrance,
        later=later,
        trace=trace,
    )


class Extender:
    """`known` are the nodes of our own cache, None if there is none; `sent` those that come with requests.

    `kept` gives a pod that was sent as agents see it.

    `hindrance` tells why the cache cannot be relied upon yet, or nothing. Nodes that are sent wait for it as
    well, since their pods and measurements come from there.
    """

    def __init__(
        self,
        verbs: Verbs,
        *,
        known: View | None,
        sent: SentNodes,
        kept: Callable[[Pod], Pod],
        traffic: Traffic,
        registry: CollectorRegistry,
        hindrance: Callable[[], str] = lambda: "",
        later: Later = at_once,
        trace: bool = False,
    ) -> None:
        self._known = known
        self._sent = sent
        self._traffic = traffic
        self._registry = registry
        self._hindrance = hindrance
        self._later = later
        self._trace = trace
        # Why it was not ready when it was last asked.
        self._problem = ""
        # Profiles that were asked for priorities: an entry need not have both verbs.
        self._ranking: set[str] = set()
        self._unknown = UnknownNodes()
        self._read: Callable[[bytes], Question] = partial(Question.about, kept=kept)
        self._question: Callable[[bytes], Question] = lru_cache(_PODS)(self._read)
        self._posts: dict[str, Answer] = {"bind": self._bind, "preemption": self._preempt}
        for verb, profile in verbs.predicates.items():
            self._posts[f"predicates/{verb}"] = partial(self._filter, f"predicates/{verb}", profile)
        for verb, profile in verbs.priorities.items():
            self._posts[f"priorities/{verb}"] = partial(self._prioritize, f"priorities/{verb}", profile)
        self._gets: dict[str, Callable[[], Reply]] = {
            "/version": lambda: Reply(200, __version__.encode(), TEXT),
            "/healthz": lambda: Reply(200, b"ok", TEXT),
            "/livez": lambda: Reply(200, b"ok", TEXT),
            "/readyz": self._ready,
            "/metrics": self._metrics,
        }

    def measured(self, values: Mapping[str, Mapping[str, Measured]]) -> None:
        """What providers told counts for nodes that are sent as well."""
        self._sent.measured(values)

    def answer(self, method: str, path: str, body: bytes, *, waited: float | None = None) -> Reply:
        """Never raises. An answer that is early does not count: ask again, and tell the seconds `waited`."""
        began = time.perf_counter()
        verb = path.removeprefix(_PREFIX) if path.startswith(_PREFIX) else ""
        try:
            reply = self._routed(method, path, verb, body)
            if reply.early and waited is not None:
                # What is unknown is forgotten at times, and remembered again by now.
                reply = self._routed(method, path, verb, body)
        except Exception as error:
            # A fault of ours; one request must not end the process.
            log.exception("a request broke", path=path)
            reply = Reply(500, wire.refused(f"internal error: {error!r}"))
        if reply.early and waited is None:
            return reply
        if path not in self._gets:
            seconds = (waited or 0.0) + time.perf_counter() - began
            self._later(partial(self._tell, verb, reply, seconds))
        if self._trace:
            said, answered = body.decode(errors="replace"), reply.body.decode(errors="replace")
            log.debug("request", method=method, path=path, body=said, status=reply.status, reply=answered)
        return reply

    def _routed(self, method: str, path: str, verb: str, body: bytes) -> Reply:
        if (get := self._gets.get(path)) is not None:
            return get() if method in ("GET", "HEAD") else _not_allowed(method, path, "GET, HEAD")
        if (post := self._posts.get(verb)) is None:
            verbs = ", ".join(_PREFIX + each for each in self._posts)
            return Reply(404, wire.refused(f"there is nothing at {path}; there are {verbs}"))
        if method != "POST":
            return _not_allowed(method, path, "POST")
        try:
            return post(body)
        except wire.Malformed as error:
            log.warning("a request is malformed", path=path, reason=str(error))
            return Reply(400, wire.refused(f"the request is not what a kube-scheduler asks: {error}"))

    def _filter(self, verb: str, profile: str, body: bytes) -> Reply:
        asked = wire.asked(body)
        question = self._about(asked.pod)
        view, problem = self._view(asked)
        if view is None:
            return Reply(200, wire.filtered(error=problem), failed=True)
        nodes = view.named(asked.names) if asked.names is not None else self._put(asked)
        if self._is_early(nodes):
            return _EARLY
        try:
            found = view.filter(profile, question, nodes.rows)
        except PluginFailure as failure:
            return Reply(200, wire.filtered(error=_broken(verb, question, failure)), failed=True)
        left = int(found.left.sum())
        said = _said(question, nodes, left)
        failed, unresolvable = view.told(found, nodes.unknown)
        if asked.names is None:
            kept = [node for node, passed in zip(asked.nodes, found.left.tolist(), strict=True) if passed]
            return Reply(200, wire.filtered(nodes=kept, failed=failed, unresolvable=unresolvable), said=said)
        names = asked.names
        if left < len(nodes.rows) or nodes.unknown:
            rest = nodes.only(found.left)
            names = wire.written_names(rest.names)
            view.remember(names, rest)
        if profile in self._ranking and max(len(asked.pod), len(names)) <= LARGEST_KEPT:
            # While kube-scheduler ranks the nodes that are left itself, before it asks.
            self._later(partial(view.foresee, profile, question, names))
        return Reply(200, wire.filtered(names=names, failed=failed, unresolvable=unresolvable), said=said)

    def _prioritize(self, verb: str, profile: str, body: bytes) -> Reply:
        self._ranking.add(profile)
        asked = wire.asked(body)
        question = self._about(asked.pod)
        view, problem = self._view(asked)
        if view is None:
            return Reply(400 if self._known is None else 503, wire.refused(problem))
        nodes = view.named(asked.names) if asked.names is not None else self._put(asked)
        if self._is_early(nodes):
            # The agent is not asked twice: to one that learns it would be another pod.
            return _EARLY
        try:
            answer = view.priorities(profile, question, nodes)
        except PluginFailure as failure:
            return Reply(500, wire.refused(_broken(verb, question, failure)))
        said = _said(question, nodes, len(nodes.rows))
        return Reply(200, answer, said=said)

    def _about(self, pod: bytes) -> Question:
        return (self._question if len(pod) <= LARGEST_KEPT else self._read)(pod)

    def _is_early(self, nodes: Asked) -> bool:
        return self._unknown.worth_waiting_for(nodes.unknown, now=time.monotonic())

    def _view(self, asked: wire.Asked) -> tuple[View | None, str]:
        """What knows the nodes, or why nothing does."""
        if asked.names is not None and self._known is None:
            return None, STANDALONE
        problem = self._hindrance()
        if problem != self._problem:
            self._problem = problem
            if problem:
                log.warning("not ready", reason=problem)
        if problem:
            return None, f"the extender is not ready: {problem}"
        return (self._sent if asked.names is None else self._known), ""

    def _put(self, asked: wire.Asked) -> Asked:
        return self._sent.put(asked.nodes, wall_time=time.time())

    def _bind(self, _body: bytes) -> Reply:
        return Reply(200, wire.refused(NO_BIND))

    def _preempt(self, body: bytes) -> Reply:
        return Reply(200, wire.preempted(wire.read_victims(body)))

    def _ready(self) -> Reply:
        problem = self._hindrance()
        return Reply(503, f"{problem}\n".encode(), TEXT) if problem else Reply(200, b"ok", TEXT)

    def _metrics(self) -> Reply:
        return Reply(200, generate_latest(self._registry), "text/plain; version=0.0.4; charset=utf-8")

    def _tell(self, verb: str, reply: Reply, seconds: float) -> None:
        known = verb if verb in self._posts else "other"
        self._traffic.count(known, reply.status, seconds, failed=reply.failed or reply.status >= 400)
        log.debug("asked", verb=known, status=reply.status, failed=reply.failed, seconds=round(seconds, 6))
        if (said := reply.said) is not None:
            self._traffic.nodes(verb, asked=said.nodes, answered=said.left)
            log.info("answered", verb=verb, pod=said.pod, nodes=said.nodes, left=said.left)


def _said(question: Question, nodes: Asked, left: int) -> Said:
    return Said(question.pod.pod.key, len(nodes.rows) + len(nodes.unknown), left)


def _broken(verb: str, question: Question, failure: PluginFailure) -> str:
    message = failure.status.message
    log.error("an agent failed", verb=verb, pod=question.pod.pod.key, reason=message)
    return message


def _not_allowed(method: str, path: str, allow: str) -> Reply:
    return Reply(405, wire.refused(f"{path} is not for {method}, but for {allow}"), allow=allow)
