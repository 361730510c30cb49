"""What Kubernetes takes as a label key, a label value and the name of an extended resource."""

import re

_NAME = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")
_PREFIX = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")
_LONGEST_NAME = 63
_LONGEST_PREFIX = 253

LABEL_KEY = "a label key such as app or example.com/app"
LABEL_VALUE = "a text of at most 63 letters, digits, '-', '_' and '.'"
EXTENDED_RESOURCE = "an extended resource such as example.com/gpu"


def is_qualified_name(text: str) -> bool:
    """Holds for label keys and for names of resources: an optional domain, a slash and a name."""
    *prefix, name = text.split("/")
    if len(prefix) > 1 or len(name) > _LONGEST_NAME or not _NAME.fullmatch(name):
        return False
    return not prefix or (len(prefix[0]) <= _LONGEST_PREFIX and bool(_PREFIX.fullmatch(prefix[0])))


def is_label_value(text: str) -> bool:
    return not text or (len(text) <= _LONGEST_NAME and bool(_NAME.fullmatch(text)))


def is_extended_resource(text: str) -> bool:
    """A resource of a domain other than Kubernetes' own, whose name in a quota (`requests.…`) is one too."""
    own = "/" not in text or "kubernetes.io/" in text or text.startswith("requests.")
    return not own and is_qualified_name(text) and is_qualified_name(f"requests.{text}")
