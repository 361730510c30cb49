"""The labels that pin pods to nodes.

    rf.scheduler.<scheduler>.<namespace>/<pod>     as a label key of the node; its value does not matter,
    rf.scheduler.<scheduler>/<pod>                 older: for a pod of this name in whatever namespace

but that `force` sends the pod there whatever speaks against it.
"""

from typing import NamedTuple

from longshore.api.names import MAX_LABEL, MAX_SUBDOMAIN, is_dns_label, is_dns_subdomain, is_label_value

PREFIX = "rf.scheduler."
FORCE = "force"
# The scheduler's name where nobody says another.
DEFAULT_SCHEDULER = "rfcustom"


class Pin(NamedTuple):
    """What a key says. The namespace is empty in the older form, which means whatever namespace."""

    scheduler: str
    namespace: str
    pod: str

    @property
    def older(self) -> bool:
        return not self.namespace


def pin_key(scheduler: str, namespace: str, pod: str) -> str:
    return f"{PREFIX}{scheduler}.{namespace}/{pod}"


def legacy_key(scheduler: str, pod: str) -> str:
    """Of the older form, without the namespace."""
    return f"{PREFIX}{scheduler}/{pod}"


def problem_with(key: str) -> str:
    """Why the key of `pin_key` or `legacy_key` cannot be that of a label; empty if it can."""
    prefix, _, name = key.partition("/")
    if len(name) > MAX_LABEL:
        return f"the pod's name has {len(name)} characters, and the label of a node takes {MAX_LABEL}"
    if not name or not is_label_value(name):
        return f"the pod's name {name!r} cannot be part of a label"
    if len(prefix) > MAX_SUBDOMAIN:
        return (
            f"the label's prefix {prefix[:40]}… has {len(prefix)} characters, and it may have {MAX_SUBDOMAIN}"
        )
    if not is_dns_subdomain(prefix):
        scheduler = prefix.removeprefix(PREFIX).rpartition(".")[0]
        return f"the scheduler name {scheduler!r} cannot be part of a label: use lower case, digits, - and ."
    return ""


def readings(key: str) -> tuple[Pin, ...]:
    """All that the key says: nothing if it is no pin, and two things if the prefix can be cut in two ways.

    Names of schedulers may have dots, so `rf.scheduler.a.b/web-0` pins web-0 of namespace b for scheduler a,
    and in the older form any web-0 for scheduler a.b. The namespaced reading comes first.
    """
    if not key.startswith(PREFIX) or problem_with(key):
        return ()
    prefix, _, pod = key.removeprefix(PREFIX).partition("/")
    scheduler, _, namespace = prefix.rpartition(".")
    older = Pin(prefix, "", pod)
    if scheduler and is_dns_label(namespace):
        return Pin(scheduler, namespace, pod), older
    return (older,)
