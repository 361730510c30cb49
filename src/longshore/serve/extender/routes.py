"""The routes of an extender: those of kube-scheduler's extender/v1, of probes and of Prometheus.

    POST /scheduler/predicates/VERB, /scheduler/priorities/VERB     the agents
    POST /scheduler/bind, /scheduler/preemption                     rejected; returned unchanged
    GET  /version, /healthz, /livez, /readyz, /metrics

This module has no sockets: a request is a method, a path and a body, and the answer is a value. Every request
gets an answer, even if its body is malformed or an agent fails.
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
from longshore.serve.extender.agent_engine import AgentEngine
from longshore.serve.extender.metrics import Traffic, registry_of
from longshore.serve.extender.node_view import NodeRows, NodeView, Question, SentNodes
from longshore.serve.extender.unknown_nodes import UnknownNodes

log = structlog.get_logger()

JSON = "application/json"
TEXT = "text/plain; charset=utf-8"
NO_BIND = (
    "this extender does not bind pods: leave bindVerb empty in its entry, so that kube-scheduler binds them"
)
STANDALONE = (
    "this extender runs with --standalone and cannot look up nodes by name: "
    "set nodeCacheCapable: false in its entry, or run it without --standalone"
)
NO_CERTIFICATE = (
    "this request requires a client certificate signed by the CA in --client-ca-file: "
    "set certFile and keyFile in the tlsConfig of the extender's entry"
)
# The paths that need no client certificate.
OPEN = frozenset({"/version", "/healthz", "/livez", "/readyz"})
_PREFIX = "/scheduler/"
# Pods that are kept, because Filter and Prioritize requests are about the same pod.
_PODS = 64


class RequestSummary(msgspec.Struct, frozen=True, gc=False):
    """The pod and the number of nodes of a request, and how many passed or got a score."""

    pod: str
    nodes: int
    left: int


class Reply(msgspec.Struct, frozen=True, gc=False):
    status: int
    body: bytes
    content_type: str = JSON
    # The allowed methods, if the request had another.
    allow: str = ""
    # A node is unknown, perhaps because the watch is behind: the answer may soon be different.
    early: bool = False
    # The body reports an error even if the status does not, as an answer to Filter can.
    failed: bool = False
    summary: RequestSummary | None = None


_EARLY = Reply(200, b"", early=True)


class Verbs(msgspec.Struct, frozen=True):
    """The profile whose plugin answers, by verb."""

    predicates: Mapping[str, str]
    priorities: Mapping[str, str]


Route = Callable[[bytes], Reply]
# Calls a function after the answer is sent, so that the client does not wait for it.
Later = Callable[[Callable[[], None]], object]


def at_once(act: Callable[[], None]) -> None:
    act()


def assemble(
    agents: AgentEngine,
    *,
    cached: bool,
    read_load: bool = True,
    max_age: float = MAX_AGE,
    settle: float = SETTLE,
    hindrance: Callable[[], str] = lambda: "",
    later: Later = at_once,
    trace: bool = False,
) -> "Extender":
    """Return an extender for these agents. It can look up nodes by name if it is `cached`.

    `cached` means that the engine follows a cluster. With `read_load`, the load of sent nodes is read from
    their annotations. Those values expire after `max_age` seconds, and a pod shows in them after `settle`
    seconds.
    """
    engine, traffic = agents.engine, Traffic()

    def read(cluster: ClusterState) -> None:
        cluster.measures.max_age = max_age
        cluster.measures.settle = settle
        annotations.read_congestion(cluster)
        annotations.read_requested(cluster)
        if read_load:
            annotations.read_load(cluster)

    return Extender(
        Verbs(agents.predicates, agents.priorities),
        known=NodeView(engine.cluster, engine.chooser, fine_scores=agents.fine_scores) if cached else None,
        sent=SentNodes(
            engine.profiles.__getitem__,
            read,
            watched=engine.cluster if cached else None,
            fine_scores=agents.fine_scores,
        ),
        kept=engine.kept,
        traffic=traffic,
        registry=registry_of(traffic, engine.cluster),
        hindrance=hindrance,
        later=later,
        trace=trace,
    )


class Extender:
    """Answers requests about `known` nodes, those in our own cache if there is one, and about `sent` nodes.

    `kept` returns a sent pod as agents see it.

    `hindrance` returns why the cache is not ready, or an empty string. Requests with sent nodes need the
    cache too, because their pods and measurements come from it.
    """

    def __init__(
        self,
        verbs: Verbs,
        *,
        known: NodeView | None,
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
        # Why it was not ready at the last request.
        self._problem = ""
        # Profiles that Prioritize was called for, because an extender entry need not have both verbs.
        self._ranking: set[str] = set()
        self._unknown = UnknownNodes()
        self._read: Callable[[bytes], Question] = partial(Question.about, kept=kept)
        self._question: Callable[[bytes], Question] = lru_cache(_PODS)(self._read)
        self._posts: dict[str, Route] = {"bind": self._bind, "preemption": self._preempt}
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
        """Use these measurements for sent nodes too."""
        self._sent.measured(values)

    def answer(self, method: str, path: str, body: bytes, *, waited: float | None = None) -> Reply:
        """Return the answer to a request, without raising.

        If the reply is early, call this again with the seconds that were `waited` since.
        """
        began = time.perf_counter()
        verb = path.removeprefix(_PREFIX) if path.startswith(_PREFIX) else ""
        try:
            reply = self._routed(method, path, verb, body)
            if reply.early and waited is not None:
                # The unknown names had been forgotten; the first call has remembered them again.
                reply = self._routed(method, path, verb, body)
        except Exception as error:
            # A bug; one request must not end the process.
            log.exception("request failed", path=path)
            reply = Reply(500, wire.refused(f"internal error: {error!r}"))
        if reply.early and waited is None:
            return reply
        if path not in self._gets:
            seconds = (waited or 0.0) + time.perf_counter() - began
            self._later(partial(self._count, verb, reply, seconds))
        if self._trace:
            text, answer = body.decode(errors="replace"), reply.body.decode(errors="replace")
            log.debug("request", method=method, path=path, body=text, status=reply.status, reply=answer)
        return reply

    def _routed(self, method: str, path: str, verb: str, body: bytes) -> Reply:
        if (get := self._gets.get(path)) is not None:
            return get() if method in ("GET", "HEAD") else _not_allowed(method, path, "GET, HEAD")
        if (post := self._posts.get(verb)) is None:
            verbs = ", ".join(_PREFIX + each for each in self._posts)
            return Reply(404, wire.refused(f"{path} does not exist; the paths are {verbs}"))
        if method != "POST":
            return _not_allowed(method, path, "POST")
        try:
            return post(body)
        except wire.Malformed as error:
            log.warning("malformed request", path=path, reason=str(error))
            return Reply(400, wire.refused(f"malformed request: {error}"))

    def _filter(self, verb: str, profile: str, body: bytes) -> Reply:
        args = wire.read_args(body)
        question = self._about(args.pod)
        view, problem = self._view(args)
        if view is None:
            return Reply(200, wire.filtered(error=problem), failed=True)
        nodes = view.named(args.names) if args.names is not None else self._put(args)
        if self._is_early(nodes):
            return _EARLY
        try:
            found = view.filter(profile, question, nodes.rows)
        except PluginFailure as failure:
            return Reply(200, wire.filtered(error=_failure(verb, question, failure)), failed=True)
        left = int(found.left.sum())
        summary = _summary(question, nodes, left)
        failed, unresolvable = view.failed_nodes(found, nodes.unknown)
        if args.names is None:
            kept = [node for node, passed in zip(args.nodes, found.left.tolist(), strict=True) if passed]
            answer = wire.filtered(nodes=kept, failed=failed, unresolvable=unresolvable)
            return Reply(200, answer, summary=summary)
        names = args.names
        if left < len(nodes.rows) or nodes.unknown:
            rest = nodes.only(found.left)
            names = wire.written_names(rest.names)
            view.remember(names, rest)
        if profile in self._ranking and max(len(args.pod), len(names)) <= LARGEST_KEPT:
            # kube-scheduler scores the remaining nodes itself before it calls Prioritize.
            self._later(partial(view.prepare, profile, question, names))
        answer = wire.filtered(names=names, failed=failed, unresolvable=unresolvable)
        return Reply(200, answer, summary=summary)

    def _prioritize(self, verb: str, profile: str, body: bytes) -> Reply:
        self._ranking.add(profile)
        args = wire.read_args(body)
        question = self._about(args.pod)
        view, problem = self._view(args)
        if view is None:
            return Reply(400 if self._known is None else 503, wire.refused(problem))
        nodes = view.named(args.names) if args.names is not None else self._put(args)
        if self._is_early(nodes):
            # Return before calling the agent: an agent that learns would count the pod twice.
            return _EARLY
        try:
            answer = view.priorities(profile, question, nodes)
        except PluginFailure as failure:
            return Reply(500, wire.refused(_failure(verb, question, failure)))
        return Reply(200, answer, summary=_summary(question, nodes, len(nodes.rows)))

    def _about(self, pod: bytes) -> Question:
        return (self._question if len(pod) <= LARGEST_KEPT else self._read)(pod)

    def _is_early(self, nodes: NodeRows) -> bool:
        return self._unknown.worth_waiting_for(nodes.unknown, now=time.monotonic())

    def _view(self, args: wire.ExtenderArgs) -> tuple[NodeView | None, str]:
        """Return the view that has the nodes, or None and why there is no such view."""
        if args.names is not None and self._known is None:
            return None, STANDALONE
        problem = self._hindrance()
        if problem != self._problem:
            self._problem = problem
            if problem:
                log.warning("not ready", reason=problem)
        if problem:
            return None, f"the extender is not ready: {problem}"
        return (self._sent if args.names is None else self._known), ""

    def _put(self, args: wire.ExtenderArgs) -> NodeRows:
        return self._sent.put(args.nodes, wall_time=time.time())

    def _bind(self, _body: bytes) -> Reply:
        return Reply(200, wire.refused(NO_BIND))

    def _preempt(self, body: bytes) -> Reply:
        return Reply(200, wire.preempted(wire.read_victims(body)))

    def _ready(self) -> Reply:
        problem = self._hindrance()
        return Reply(503, f"{problem}\n".encode(), TEXT) if problem else Reply(200, b"ok", TEXT)

    def _metrics(self) -> Reply:
        return Reply(200, generate_latest(self._registry), "text/plain; version=0.0.4; charset=utf-8")

    def _count(self, verb: str, reply: Reply, seconds: float) -> None:
        known = verb if verb in self._posts else "other"
        self._traffic.count(known, reply.status, seconds, failed=reply.failed or reply.status >= 400)
        log.debug("asked", verb=known, status=reply.status, failed=reply.failed, seconds=round(seconds, 6))
        if (summary := reply.summary) is not None:
            self._traffic.nodes(verb, asked=summary.nodes, answered=summary.left)
            log.info("answered", verb=verb, pod=summary.pod, nodes=summary.nodes, left=summary.left)


def _summary(question: Question, nodes: NodeRows, left: int) -> RequestSummary:
    return RequestSummary(question.pod.pod.key, len(nodes.rows) + len(nodes.unknown), left)


def _failure(verb: str, question: Question, failure: PluginFailure) -> str:
    message = failure.status.message
    log.error("an agent failed", verb=verb, pod=question.pod.pod.key, reason=message)
    return message


def _not_allowed(method: str, path: str, allow: str) -> Reply:
    return Reply(405, wire.refused(f"{path} does not support {method}; use {allow}"), allow=allow)
