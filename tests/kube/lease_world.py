"""Candidates for a lease in virtual time: one server, a network that fails, and clocks that disagree."""

import heapq
import random
from collections.abc import Callable
from itertools import count

from longshore.kube.election import Election, LeaseRecord, Over, Read, Timing, Wait, Write

TIMING = Timing()


class Server:
    """Keeps one lease, by the rules of optimistic concurrency."""

    def __init__(self) -> None:
        self.record: LeaseRecord | None = None
        self._versions = count(1)

    def write(self, step: Write) -> LeaseRecord | None:
        """Return the record as written, or None if another candidate was first."""
        if step.version != (self.record.version if self.record else None):
            return None
        self.record = LeaseRecord(
            version=str(next(self._versions)),
            holder=step.holder,
            duration=float(step.duration),
            transitions=step.transitions,
        )
        return self.record


class Candidate:
    """A process with its own clock, which has an offset and may run too fast or too slow."""

    def __init__(self, name: str, *, offset: float = 0.0, rate: float = 1.0) -> None:
        self.name = name
        self.election = Election(name, TIMING)
        self.alive = True
        self.led_at: float | None = None
        self._offset = offset
        self._rate = rate

    def local(self, time: float) -> float:
        return self._offset + time * self._rate

    def real(self, local: float) -> float:
        return (local - self._offset) / self._rate

    def holds(self, time: float) -> bool:
        return self.alive and self.election.holds(self.local(time))


class Network:
    """A perfect network: every request and every response takes a millisecond."""

    def delay(self) -> float | None:
        """Return how long a message takes, or None if it never arrives."""
        return 0.001

    def lateness(self) -> float:
        """Return how much later than planned a process runs."""
        return 0.0


class BadNetwork(Network):
    """A network that delays and loses messages, with processes that pause at times."""

    def __init__(self, source: random.Random, *, trouble: float) -> None:
        self._source = source
        self._trouble = trouble

    def delay(self) -> float | None:
        if self._source.random() >= self._trouble:
            return self._source.uniform(0.0, 0.2)
        return None if self._source.random() < 0.5 else self._source.uniform(0.2, 25.0)

    def lateness(self) -> float:
        return self._source.uniform(0.0, 25.0) if self._source.random() < self._trouble / 2 else 0.0


class World:
    def __init__(self, network: Network | None = None) -> None:
        self.now = 0.0
        self.server = Server()
        self.network = network or Network()
        self.candidates: list[Candidate] = []
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()

    def at(self, time: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._events, (max(time, self.now), next(self._numbers), action))

    def join(self, candidate: Candidate) -> Candidate:
        self.candidates.append(candidate)
        self.at(self.now, lambda: self._step(candidate))
        return candidate

    def kill(self, candidate: Candidate) -> None:
        candidate.alive = False

    def stop(self, candidate: Candidate) -> None:
        candidate.election.release(now=candidate.local(self.now))
        self.at(self.now, lambda: self._step(candidate))

    def run(self, until: float) -> None:
        """Let time pass, and check that no two candidates ever hold the lease."""
        while self._events and self._events[0][0] <= until:
            self.now, _, action = heapq.heappop(self._events)
            action()
            holders = [candidate.name for candidate in self.candidates if candidate.holds(self.now)]
            assert len(holders) <= 1, f"at {self.now}: {holders}"
        self.now = until

    @property
    def holder(self) -> Candidate | None:
        return next((candidate for candidate in self.candidates if candidate.holds(self.now)), None)

    def _step(self, candidate: Candidate) -> None:
        if not candidate.alive:
            return
        match candidate.election.next(candidate.local(self.now)):
            case Over():
                candidate.alive = False
            case Wait(until):
                # Never exactly now: clocks are converted with an error, and time must advance.
                time = max(candidate.real(until), self.now + 1e-6) + self.network.lateness()
                self.at(time, lambda: self._step(candidate))
            case Read() | Write() as step:
                self._request(candidate, step)

    def _request(self, candidate: Candidate, step: Read | Write) -> None:
        sent = candidate.local(self.now)
        limit = TIMING.request_limit
        if candidate.election.holds(sent):
            limit = min(limit, candidate.election.held_until - sent)
        # Whichever comes first: the response or the time limit.
        waiting = {step}

        def end(tell: Callable[[], None]) -> None:
            if waiting and candidate.alive:
                waiting.clear()
                tell()
                if candidate.election.leads and candidate.led_at is None:
                    candidate.led_at = self.now
                self._step(candidate)

        def give_up() -> None:
            candidate.election.failed(sent=sent, now=candidate.local(self.now))

        def arrive() -> None:
            answer = self.server.record if isinstance(step, Read) else self.server.write(step)
            back = self.network.delay()
            if back is not None:
                time = self.now + back + self.network.lateness()
                self.at(time, lambda: end(lambda: self._answer(candidate, step, sent, answer)))

        there = self.network.delay()
        if there is not None:
            self.at(self.now + there, arrive)
        self.at(candidate.real(sent + limit) + self.network.lateness(), lambda: end(give_up))

    def _answer(
        self, candidate: Candidate, step: Read | Write, sent: float, answer: LeaseRecord | None
    ) -> None:
        now = candidate.local(self.now)
        if isinstance(step, Read):
            candidate.election.observed(answer, now=now)
        elif answer is not None:
            candidate.election.written(answer, sent=sent, now=now)
        else:
            candidate.election.failed(sent=sent, now=now)
