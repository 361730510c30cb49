"""Who leads, decided without I/O: what was seen of the lease and the time come in, the next step comes out.

The rules are those of client-go. A standby trusts no clock but its own: it takes the lease over when it has
seen no write to it for as long as the holder asked for. The holder counts from before it sent its renewal,
the standby from after it saw it, so the holder always stops first; between the two lies the time from the
renew deadline to the end of the lease: room for a bind under way and for clocks of different speeds.
"""

import math
from dataclasses import dataclass

from longshore.errors import UserError

# A standby's waits may be drawn out by this much in client-go; the renew deadline has to leave room for one.
JITTER = 1.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Seconds; the defaults are those of all Kubernetes components."""

    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0

    def __post_init__(self) -> None:
        if self.retry_period <= 0:
            raise UserError(f"the retry period of the lease is {self.retry_period:g} s: make it positive")
        if self.renew_deadline <= self.retry_period * JITTER:
            raise UserError(
                f"the renew deadline of the lease, {self.renew_deadline:g} s, has to be more than "
                f"{JITTER:g} times its retry period of {self.retry_period:g} s"
            )
        if self.lease_duration <= self.renew_deadline:
            raise UserError(
                f"the duration of the lease, {self.lease_duration:g} s, has to be more than "
                f"its renew deadline of {self.renew_deadline:g} s"
            )

    @property
    def request_limit(self) -> float:
        """How long one request may take: one that stalls leaves time for two more before the deadline."""
        return self.renew_deadline / 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """The lease as the server has it; a version that stays the same means that nobody wrote."""

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
    """Make this the record if its version is still this one, or if there still is none."""

    version: str | None
    holder: str
    duration: int
    transitions: int
    # Whether someone else held it before, or nobody.
    acquires: bool


@dataclass(frozen=True, slots=True)
class Over:
    """The election has ended for us: the lease is lost or given back."""


Step = Wait | Read | Write | Over


class Election:
    """One candidate. Ask for the `next` step, take it, and tell how it went, with the time at both ends."""

    def __init__(self, identity: str, timing: Timing) -> None:
        self._identity = identity
        self._timing = timing
        self._record: Record | None = None
        self._record_seen = -math.inf
        # Whether the record may be written over without reading it again.
        self._fresh = False
        self._wake = -math.inf
        # When the request was sent that last made or kept us the holder.
        self._renewed = -math.inf
        self._leading = False
        # Whether a write of ours may have landed.
        self._claimed = False
        self._releasing = False
        self._over = False

    @property
    def leads(self) -> bool:
        """Whether we became the holder and have not lost it since; `holds` is what allows to act."""
        return self._leading and not self._over

    @property
    def held_until(self) -> float:
        """Until when we may act as the holder, if no renewal succeeds."""
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

    def observed(self, record: Record | None, *, now: float) -> None:
        """The answer to `Read`, or that there is no lease."""
        if record is not None and (self._record is None or record.version != self._record.version):
            self._record, self._record_seen = record, now
        held_by_other = record is not None and record.holder not in ("", self._identity)
        self._claimed = record is not None and record.holder == self._identity
        if held_by_other and self._leading:
            self._over = True
            return
        # A lease deleted under its holder binds us as long as before: the holder may not know of it yet.
        expiry = self._expiry()
        if expiry > now and (held_by_other or record is None):
            self._fresh = False
            self._wake = min(now + self._timing.retry_period, expiry)
            return
        if record is None:
            self._record = None
        self._fresh = True
        self._wake = now

    def written(self, record: Record, *, sent: float, now: float) -> None:
        """The answer to `Write`: this is the lease now."""
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
        """The step was refused, or no answer came: whatever the server has now, it has to be read."""
        self._fresh = False
        self._wake = max(now, sent + self._timing.retry_period)

    def release(self, *, now: float) -> None:
        """Stop holding at once and give the lease back, if it is ours or may be."""
        self._releasing = True
        self._wake = now

    def _expiry(self) -> float:
        """When the lease that was seen last, in the hands of someone else, may be taken over."""
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
