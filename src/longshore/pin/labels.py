"""The labels that pin pods to nodes.

    rf.scheduler.<scheduler>.<namespace>/<pod>     the key of a label of the node
    rf.scheduler.<scheduler>/<pod>                 the older form, for a pod of this name in any namespace

The value of the label does not matter, unless it is `force`: then the pod goes there without any filters.
"""

from typing import NamedTuple

from longshore.api.names import MAX_LABEL, MAX_SUBDOMAIN, is_dns_label, is_dns_subdomain, is_label_value

PREFIX = "rf.scheduler."
FORCE = "force"
# The name of the scheduler if none is specified.
DEFAULT_SCHEDULER = "rfcustom"


class Pin(NamedTuple):
    """The content of a key. The namespace is empty in the older form, which applies to any namespace."""

    scheduler: str
    namespace: str
    pod: str

    @property
    def older(self) -> bool:
        return not self.namespace


def pin_key(scheduler: str, namespace: str, pod: str) -> str:
    return f"{PREFIX}{scheduler}.{namespace}/{pod}"


def legacy_key(scheduler: str, pod: str) -> str:
    """Return the key in the older form, without the namespace."""
    return f"{PREFIX}{scheduler}/{pod}"


def problem_with(key: str) -> str:
    """Return why a key of `pin_key` or `legacy_key` is not a valid label key; empty if it is valid."""
    prefix, _, name = key.partition("/")
    if len(name) > MAX_LABEL:
        return f"the pod's name has {len(name)} characters, but a label allows at most {MAX_LABEL}"
    if not name or not is_label_value(name):
        return f"the pod's name {name!r} cannot be part of a label"
    if len(prefix) > MAX_SUBDOMAIN:
        return (
            f"the label's prefix {prefix[:40]}… has {len(prefix)} characters, "
            f"but a label allows at most {MAX_SUBDOMAIN}"
        )
    if not is_dns_subdomain(prefix):
        scheduler = prefix.removeprefix(PREFIX).rpartition(".")[0]
        return f"the scheduler name {scheduler!r} cannot be part of a label: use lower case, digits, - and ."
    return ""


def readings(key: str) -> tuple[Pin, ...]:
    """Return the pins that the key can mean: none if it is not a pinning label, and two if it is ambiguous.

    The name of a scheduler may contain dots, so `rf.scheduler.a.b/web-0` pins web-0 of namespace b for
    scheduler a, or in the older form any web-0 for scheduler a.b. The reading with a namespace comes first.
    """
    if not key.startswith(PREFIX) or problem_with(key):
        return ()
    prefix, _, pod = key.removeprefix(PREFIX).partition("/")
    scheduler, _, namespace = prefix.rpartition(".")
    older = Pin(prefix, "", pod)
    if scheduler and is_dns_label(namespace):
        return Pin(scheduler, namespace, pod), older
    return (older,)
