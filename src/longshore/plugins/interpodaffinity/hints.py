"""The events after which a pod that was rejected because of inter-pod affinity may be schedulable."""

from longshore.api import InvalidSelector, Node, Pod, selects
from longshore.cluster import PodSelector, Term, Terms


def pod_matters(pod: Pod, old: Pod | None, new: Pod | None) -> bool:
    if old is not None and new is not None and new.metadata.uid == pod.metadata.uid:
        # Its own labels have changed: pods that kept it away may no longer do so.
        return True
    if not all(_placed(other) for other in (old, new) if other is not None):
        return False
    try:
        terms = Terms.of(pod)
    except InvalidSelector:
        return True
    near, far = terms.affinity, terms.anti_affinity
    if old is None:
        return new is not None and _matches(near, new)
    if new is None:
        return _matches(far, old) or _matches(Terms.of_placed(old).anti_affinity, pod)
    return (not _matches(near, old) and _matches(near, new)) or (
        _matches(far, old) and not _matches(far, new)
    )


def node_matters(pod: Pod, old: Node | None, new: Node) -> bool:
    try:
        terms = Terms.of(pod)
    except InvalidSelector:
        return True
    after = new.metadata.labels
    near = {term.topology_key for term in terms.affinity}
    far = {term.topology_key for term in terms.anti_affinity}
    if old is None:
        return bool(far) or any(key in after for key in near)
    before = old.metadata.labels
    return any(key in after and before.get(key) != after[key] for key in near) or any(
        key in before and before[key] != after.get(key) for key in far
    )


def _placed(pod: Pod) -> bool:
    return bool(pod.spec.node_name or pod.status.nominated_node_name)


def _matches(terms: tuple[Term, ...], pod: Pod) -> bool:
    """Whether the pod matches all of the terms, of which there is at least one."""
    return bool(terms) and all(_may_select(term.selector, pod) for term in terms)


def _may_select(selector: PodSelector, pod: Pod) -> bool:
    # The labels of namespaces are not looked up here, so a namespace selector may match any of them.
    about = selector.namespace_selector is not None or pod.metadata.namespace in selector.namespaces
    return about and selects(selector.labels, pod.metadata.labels)
