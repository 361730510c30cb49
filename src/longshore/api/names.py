"""The syntax of names in Kubernetes: the names of objects, labels, and resources."""

import re

MAX_LABEL = 63
MAX_SUBDOMAIN = 253

# Letters, digits, '-', '_' and '.', with a letter or digit at both ends.
NAME_PATTERN = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?"

_DNS_LABEL_PATTERN = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_NAME = re.compile(NAME_PATTERN)
_DNS_LABEL = re.compile(_DNS_LABEL_PATTERN)
_DNS_SUBDOMAIN = re.compile(rf"{_DNS_LABEL_PATTERN}(?:\.{_DNS_LABEL_PATTERN})*")


def is_dns_label(text: str) -> bool:
    """Whether a namespace or a Service can have this name. It contains no dots."""
    return len(text) <= MAX_LABEL and _DNS_LABEL.fullmatch(text) is not None


def is_dns_subdomain(text: str) -> bool:
    """Whether a pod, and most other objects, can have this name."""
    return len(text) <= MAX_SUBDOMAIN and _DNS_SUBDOMAIN.fullmatch(text) is not None


def is_label_value(text: str) -> bool:
    return not text or (len(text) <= MAX_LABEL and _NAME.fullmatch(text) is not None)


def is_qualified_name(text: str) -> bool:
    """Whether this is a valid label key or resource name, such as `app` or `example.com/app`."""
    prefix, slash, name = text.rpartition("/")
    return bool(name) and is_label_value(name) and (not slash or is_dns_subdomain(prefix))


def is_extended_resource(text: str) -> bool:
    """Whether the resource has a domain other than Kubernetes' own, and a name that a quota can also use."""
    native = "/" not in text or "kubernetes.io/" in text or text.startswith("requests.")
    return not native and is_qualified_name(text) and is_qualified_name(f"requests.{text}")
