"""What `longshore demo` prints: the nodes before and after the trigger fires, and the events of the set."""

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from longshore.cli.bars import Bars

_MOST_ROWS = 20
_MOST_REASONS = 3


class Usage(NamedTuple):
    """The pods and the requested resources of one or more nodes: cpu in millicores, memory in bytes."""

    name: str
    pods: int
    cpu: int
    cpu_allocatable: int
    memory: int
    memory_allocatable: int

    @classmethod
    def together(cls, group: "list[Usage]") -> "Usage":
        name = group[0].name if len(group) == 1 else f"{group[0].name} to {group[-1].name}"
        return cls(name, *(sum(column) for column in zip(*(usage[1:] for usage in group), strict=True)))


class Result(NamedTuple):
    """What happened in the simulation. Times are virtual seconds, but `seconds` is real time.

    `held` to `plan_gone` are about the pod set: `last_created` is when its last pod was created, `fired` when
    the trigger fired, and `as_planned` counts the pods that were bound to the node in the plan.
    """

    before: list[Usage]
    after: list[Usage]
    held: int
    why_held: str
    last_created: float
    fired: float
    planned: int
    members_bound: int
    as_planned: int
    plan_gone: bool
    ended: float
    bound: int
    pending: int
    preempted: int
    reasons: list[tuple[str, int]]
    decisions: int
    seconds: float

    @property
    def decisions_per_second(self) -> int:
        return round(self.decisions / self.seconds)


def as_dict(result: Result) -> dict[str, Any]:
    return {
        "before": [usage._asdict() for usage in result.before],
        "after": [usage._asdict() for usage in result.after],
        "set": {
            "held": result.held,
            "firedAt": round(result.fired, 3),
            "planned": result.planned,
            "leftOut": result.held - result.planned,
            "bound": result.members_bound,
            "asPlanned": result.as_planned,
            "planGone": result.plan_gone,
        },
        "pods": {"bound": result.bound, "pending": result.pending, "preempted": result.preempted},
        "pendingReasons": [{"message": message, "pods": number} for message, number in result.reasons],
        "decisions": result.decisions,
        "decisionsPerSecond": result.decisions_per_second,
        "virtualSeconds": round(result.ended, 3),
    }


def draw(result: Result, title: str, console: "Console") -> None:
    from rich.text import Text

    from longshore.cli.bars import Bars

    picture = _picture(result, Bars(console.encoding))
    console.print(Text(title, style="bold"), "", picture, "", _story(result), "", _facts(result), sep="\n")


def _picture(result: Result, bars: "Bars") -> "Table":
    from rich.table import Table

    size = -(-len(result.after) // _MOST_ROWS)
    picture = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for heading in ("node" if size == 1 else "nodes", "pods", "cpu, before and after the trigger"):
        picture.add_column(heading, no_wrap=True)
    for first in range(0, len(result.after), size):
        before, after = (
            Usage.together(usages[first : first + size]) for usages in (result.before, result.after)
        )
        cpu = bars.becoming(before.cpu, after.cpu, after.cpu_allocatable)
        picture.add_row(after.name, bars.counts(before.pods, after.pods), cpu)
    return picture


def _story(result: Result) -> "Table":
    from rich.table import Table

    story = Table.grid(padding=(0, 2, 0, 0))
    story.add_column(justify="right", no_wrap=True)
    story.add_column()

    def add(when: float, what: str) -> None:
        story.add_row(f"{when:.1f} s", what)

    if not result.held:
        add(result.fired, "the trigger fires, and the set batch has no pods")
        return story
    add(0.0, f"pods are created; {result.held:,} pods of the set batch wait: {result.why_held}")
    add(result.last_created, "the last pod of the set is created")
    left_out = result.held - result.planned
    but = f", {left_out:,} do not fit" if left_out else ""
    add(result.fired, f"2m0s later the trigger fires: a plan for {result.planned:,} pods is stored{but}")
    agree = (
        "all as planned" if result.as_planned == result.members_bound else f"{result.as_planned:,} as planned"
    )
    add(result.fired, f"{result.members_bound:,} pods bound: {agree}")
    gone = "and so is the plan" if result.plan_gone else "and the plan still exists"
    add(result.ended, f"the pods of the set are deleted, {gone}")
    return story


def _facts(result: Result) -> "Table":
    from rich.table import Table

    facts = Table.grid(padding=(0, 2, 0, 0))
    fates = (f"{result.bound:,} bound", f"{result.pending:,} pending", f"{result.preempted:,} preempted")
    facts.add_row("pods", ", ".join(fates))
    for number, (message, pods) in enumerate(result.reasons[:_MOST_REASONS]):
        facts.add_row("" if number else "pending", f"{pods:,} pods: {message}")
    if len(result.reasons) > _MOST_REASONS:
        facts.add_row("", f"and {len(result.reasons) - _MOST_REASONS:,} other reasons")
    facts.add_row(
        "decisions", f"{result.decisions:,}, {result.decisions_per_second:,} a second on this machine"
    )
    return facts
