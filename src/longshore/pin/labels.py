"""The labels that pin pods to nodes.

    rf.scheduler.<scheduler>.<namespace>/<pod>     as a label key of the node; its value does not matter,
    rf.scheduler.<scheduler>/<pod>                 older: for a pod of this name in whatever namespace

but that `force` sends the pod there whatever speaks against it.
"""

import re
from typing import NamedTuple

PREFIX = "rf.scheduler."
FORCE = "force"
# The scheduler's name where nobody says another.
DEFAULT_SCHEDULER = "rfcustom"

# What Kubernetes takes as the key of a label: a DNS subdomain, a slash, and a name.
_MAX_NAME = 63
_MAX_PREFIX = 253
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")


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
    if len(name) > _MAX_NAME:
        return f"the pod's name has {len(name)} characters, and the label of a node takes {_MAX_NAME}"
    if not _NAME.fullmatch(name):
        return f"the pod's name {name!r} cannot be part of a label"
    if len(prefix) > _MAX_PREFIX:
        return (
            f"the label's prefix {prefix[:40]}… has {len(prefix)} characters, and it may have {_MAX_PREFIX}"
        )
    if not _SUBDOMAIN.fullmatch(prefix):
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
    if scheduler and is_namespace(namespace):
        return Pin(scheduler, namespace, pod), older
    return (older,)


def is_namespace(text: str) -> bool:
    """Whether a namespace can have this name; there are no dots in it."""
    return len(text) <= _MAX_NAME and _NAMESPACE.fullmatch(text) is not None


def is_object_name(text: str) -> bool:
    """Whether a pod or a StatefulSet can have this name."""
    return len(text) <= _MAX_PREFIX and _SUBDOMAIN.fullmatch(text) is not None
