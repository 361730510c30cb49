"""Leader election without I/O: the observed lease and the time come in, and the next step comes out.

The rules are those of client-go. A standby trusts only its own clock: it takes over the lease if it has seen
no write to it for the duration that the holder specified. The holder counts from before it sent a renewal,
the standby from after it saw it, so the holder always stops first. The time between the renew deadline and
the end of the lease is the safety margin, for a bind in progress and for clocks of different speed.
"""

import math
from dataclasses import dataclass

from longshore.errors import UserError

# client-go extends the waits of a standby by up to this factor. The renew deadline must be longer than one
# wait.
JITTER = 1.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """The times of an election in seconds. The defaults are those of all Kubernetes components."""

    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0

    def __post_init__(self) -> None:
        if self.retry_period <= 0:
            raise UserError(f"the retry period of the lease is {self.retry_period:g} s: it must be positive")
        if self.renew_deadline <= self.retry_period * JITTER:
            raise UserError(
                f"the renew deadline of the lease, {self.renew_deadline:g} s, must be more than "
                f"{JITTER:g} times its retry period of {self.retry_period:g} s"
            )
        if self.lease_duration <= self.renew_deadline:
            raise UserError(
                f"the duration of the lease, {self.lease_duration:g} s, must be more than "
                f"its renew deadline of {self.renew_deadline:g} s"
            )

    @property
    def request_limit(self) -> float:
        """The time limit of one request: if it stalls, there is time for two more before the deadline."""
        return self.renew_deadline / 3


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRecord:
    """The lease as the server has it. As long as nothing is written, its version stays the same."""

    version: str
    holder: str
    duration: float
    transitions: int


@dataclass(frozen=True, slots=True)
class Wait:
    until: float


@dataclass(frozen=True, slots=True)
class Read:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """Write this record if the lease still has this version or, if that is None, still does not exist."""

    version: str | None
    holder: str
    duration: int
    transitions: int
    # Whether we did not hold the lease before.
    acquires: bool


@dataclass(frozen=True, slots=True)
class Over:
    """The election has ended for us: the lease is lost or released."""


Step = Wait | Read | Write | Over


class Election:
    """One candidate. Take the `next` step, and report its result with the times of its start and end."""

    def __init__(self, identity: str, timing: Timing) -> None:
        self._identity = identity
        self._timing = timing
        self._record: LeaseRecord | None = None
        self._record_seen = -math.inf
        # Whether the record may be overwritten without reading it again.
        self._fresh = False
        self._wake = -math.inf
        # When the last request was sent that made us the holder or renewed the lease.
        self._renewed = -math.inf
        self._leading = False
        # Whether a write of ours may have succeeded.
        self._claimed = False
        self._releasing = False
        self._over = False

    @property
    def leads(self) -> bool:
        """Whether we became the holder and have not lost the lease since. `holds` decides about acting."""
        return self._leading and not self._over

    @property
    def held_until(self) -> float:
        """The time until which we may act as the holder if no renewal succeeds."""
        return (
            self._renewed + self._timing.renew_deadline if self.leads and not self._releasing else -math.inf
        )

    def holds(self, now: float) -> bool:
        return now < self.held_until

    def next(self, now: float) -> Step:
        if self._leading and not self._releasing and not self.holds(now):
            self._over = True
        if self._releasing and not self._claimed:
            self._over = True
        if self._over:
            return Over()
        if now < self._wake:
            return Wait(min(self._wake, self.held_until) if self.leads else self._wake)
        if not self._fresh:
            return Read()
        self._claimed = True
        return self._write()

    def observed(self, record: LeaseRecord | None, *, now: float) -> None:
        """Report the result of `Read`; None if there is no lease."""
        if record is not None and (self._record is None or record.version != self._record.version):
            self._record, self._record_seen = record, now
        held_by_other = record is not None and record.holder not in ("", self._identity)
        self._claimed = record is not None and record.holder == self._identity
        if held_by_other and self._leading:
            self._over = True
            return
        # After someone deletes the lease, we still wait as long as before: the holder may not know it yet.
        expiry = self._expiry()
        if expiry > now and (held_by_other or record is None):
            self._fresh = False
            self._wake = min(now + self._timing.retry_period, expiry)
            return
        if record is None:
            self._record = None
        self._fresh = True
        self._wake = now

    def written(self, record: LeaseRecord, *, sent: float, now: float) -> None:
        """Report that `Write` succeeded, with the lease as it is now."""
        self._record, self._record_seen = record, now
        self._fresh = True
        self._claimed = record.holder == self._identity
        if self._releasing:
            return
        self._renewed = sent
        if now < sent + self._timing.renew_deadline:
            self._leading = True
        self._wake = max(now, sent + self._timing.retry_period)

    def failed(self, *, sent: float, now: float) -> None:
        """Report that a step was rejected or not answered. The lease is then read again."""
        self._fresh = False
        self._wake = max(now, sent + self._timing.retry_period)

    def release(self, *, now: float) -> None:
        """Stop holding the lease immediately, and release it if it is or may be ours."""
        self._releasing = True
        self._wake = now

    def _expiry(self) -> float:
        """Return when the lease may be taken over, if another candidate was last seen to hold it."""
        record = self._record
        if record is None or record.holder in ("", self._identity):
            return -math.inf
        return self._record_seen + (record.duration or self._timing.lease_duration)

    def _write(self) -> Write:
        record = self._record
        transitions = record.transitions if record is not None else 0
        version = record.version if record is not None else None
        if self._releasing:
            return Write(version=version, holder="", duration=1, transitions=transitions, acquires=True)
        ours = record is not None and record.holder == self._identity
        return Write(
            version=version,
            holder=self._identity,
            # Rounded up: others wait for this long.
            duration=math.ceil(self._timing.lease_duration),
            transitions=transitions + (record is not None and not ours),
            acquires=not ours,
        )
