"""Finds an existing volume for a claim: one that is reserved for it, or the smallest one that fits."""

from bisect import bisect_left, insort
from collections.abc import Callable, Container, Iterable, Sequence

import msgspec
import numpy as np

from longshore.api import (
    LabelSelector,
    Node,
    NodeSelector,
    PersistentVolume,
    PersistentVolumeClaim,
    selects,
    value,
)
from longshore.cluster import ClusterState, Nodes
from longshore.cluster.arrays import Bools
from longshore.cluster.node_selectors import selects_node
from longshore.plugins.volumebinding.assumed import Assumed
from longshore.plugins.volumes.claims import belongs_to, class_of_claim, class_of_volume
from longshore.plugins.volumes.topology import Places, nodes_of

_FILESYSTEM = "Filesystem"


class _IndexedVolume(msgspec.Struct, frozen=True):
    """A volume with its sort key and the nodes that can reach it."""

    capacity: int
    name: str
    volume: PersistentVolume
    nodes: NodeSelector | None

    @classmethod
    def of(cls, volume: PersistentVolume) -> "_IndexedVolume":
        capacity = value(volume.spec.capacity.get("storage", "0"))
        return cls(capacity, volume.metadata.name, volume, nodes_of(volume))


class VolumeIndex:
    """The volumes by class, or by the claim that they are reserved for, with the smallest first."""

    def __init__(self, cluster: Callable[[], ClusterState], assumed: Assumed[PersistentVolume]) -> None:
        self._cluster = cluster
        self._assumed = assumed
        self._version = -1
        self._by_name: dict[str, _IndexedVolume] = {}
        self._lists: dict[str | tuple[str, str], list[_IndexedVolume]] = {}

    def candidates(self, claim: PersistentVolumeClaim) -> "Candidates":
        """Return the volumes that fit the claim. Raises `InvalidSelector` if its selector is invalid."""
        self._catch_up()
        meta = claim.metadata
        free = self._lists.get(class_of_claim(claim), ())
        kept = self._lists.get((meta.namespace, meta.name), ())
        return Candidates(claim, [*kept, *free], self._assumed)

    def _catch_up(self) -> None:
        cluster = self._cluster()
        version = cluster.version(PersistentVolume)
        if version == self._version:
            return
        names = cluster.changed_since(PersistentVolume, self._version)
        self._version = version
        if names is None:
            self._by_name, self._lists = {}, {}
            for volume in cluster.objects(PersistentVolume):
                indexed = self._by_name[volume.metadata.name] = _IndexedVolume.of(volume)
                self._lists.setdefault(_list_of(volume), []).append(indexed)
            for volumes in self._lists.values():
                volumes.sort(key=_place)
            return
        for name in dict.fromkeys(names):
            self._change(name, cluster.get(PersistentVolume, name))

    def _change(self, name: str, volume: PersistentVolume | None) -> None:
        old = self._by_name.pop(name, None)
        if old is not None:
            volumes = self._lists[_list_of(old.volume)]
            del volumes[bisect_left(volumes, _place(old), key=_place)]
            if not volumes:
                del self._lists[_list_of(old.volume)]
        if volume is not None:
            new = self._by_name[name] = _IndexedVolume.of(volume)
            insort(self._lists.setdefault(_list_of(volume), []), new, key=_place)


class Candidates:
    """The volumes that fit one claim, the best first. If one is reserved for it, there are no others."""

    def __init__(
        self,
        claim: PersistentVolumeClaim,
        indexed: Iterable[_IndexedVolume],
        assumed: Assumed[PersistentVolume],
    ) -> None:
        self.claim = claim
        size, wanted_class = size_of(claim), class_of_claim(claim)
        selector = claim.spec.selector
        if selector is not None:
            # Raises even if there are no volumes.
            selects(selector, {})
        found = []
        for one in indexed:
            if one.capacity < size:
                continue
            volume = assumed.over(one.volume)
            if not _fits(claim, volume) or class_of_volume(volume) != wanted_class:
                continue
            if belongs_to(volume, claim):
                found = [one]
                break
            if _available(claim, volume, selector):
                found.append(one)
        self._found = found
        self._by_label: dict[str, dict[str, list[int]]] | None = None
        self._unlabeled: list[int] = []

    @property
    def names(self) -> list[str]:
        return [one.name for one in self._found]

    def missing_on(self, nodes: Nodes) -> Bools | bool:
        """Return true for the nodes that reach none of the volumes."""
        if not self._found:
            return True
        return ~Places(*(one.nodes for one in self._found)).where(nodes)

    def pick(self, node: Node, taken: Container[str]) -> PersistentVolume | None:
        """Return the best volume for the node that is not taken."""
        if not self._found:
            return None
        if self._by_label is None:
            self._by_label = self._index()
        labels = node.metadata.labels
        places = list(self._unlabeled)
        for key, by_value in self._by_label.items():
            places += by_value.get(labels.get(key, ""), ())
        for place in sorted(places):
            one = self._found[place]
            if one.name not in taken and (one.nodes is None or selects_node(one.nodes, node)):
                return one.volume
        return None

    def _index(self) -> dict[str, dict[str, list[int]]]:
        """Index the volumes by a label that their nodes must have. Most belong to a single node or zone."""
        by_label: dict[str, dict[str, list[int]]] = {}
        for place, one in enumerate(self._found):
            terms = () if one.nodes is None else one.nodes.node_selector_terms
            needed = [r for r in terms[0].match_expressions if r.operator == "In"] if len(terms) == 1 else []
            if not needed:
                self._unlabeled.append(place)
                continue
            by_value = by_label.setdefault(needed[0].key, {})
            for text in dict.fromkeys(needed[0].values):
                by_value.setdefault(text, []).append(place)
        return by_label


def unmatched(candidates: Sequence[Candidates], nodes: Nodes) -> list[Bools | bool]:
    """Return for each claim the nodes that have no volume left for it. No volume is given to two claims."""
    names = [name for found in candidates for name in found.names]
    if len(names) == len(set(names)):
        return [found.missing_on(nodes) for found in candidates]
    missing = np.ones((len(candidates), len(nodes)), np.bool_)
    for column, row in enumerate(nodes.numbers.tolist()):
        node = nodes.cluster.node(row)
        if node is not None:
            chosen = assign(candidates, node)
            missing[:, column] = [volume is None for volume in chosen]
    return list(missing)


def assign(candidates: Iterable[Candidates], node: Node) -> list[PersistentVolume | None]:
    """Return a volume for each claim in turn, or None if there is none left."""
    taken: set[str] = set()
    chosen = []
    for found in candidates:
        volume = found.pick(node, taken)
        chosen.append(volume)
        if volume is not None:
            taken.add(volume.metadata.name)
    return chosen


def size_of(claim: PersistentVolumeClaim) -> int:
    return value(claim.spec.resources.requests.get("storage", "0"))


def _place(one: _IndexedVolume) -> tuple[int, str]:
    return one.capacity, one.name


def _list_of(volume: PersistentVolume) -> str | tuple[str, str]:
    kept = volume.spec.claim_ref
    return class_of_volume(volume) if kept is None else (kept.namespace, kept.name)


def _fits(claim: PersistentVolumeClaim, volume: PersistentVolume) -> bool:
    """Whether the volume meets the conditions that apply even if it is reserved for the claim."""
    wanted, offered = claim.spec, volume.spec
    return (
        (offered.claim_ref is None or belongs_to(volume, claim))
        and (wanted.volume_mode or _FILESYSTEM) == (offered.volume_mode or _FILESYSTEM)
        and (wanted.volume_attributes_class_name or "") == (offered.volume_attributes_class_name or "")
        and volume.metadata.deletion_timestamp is None
    )


def _available(
    claim: PersistentVolumeClaim, volume: PersistentVolume, selector: LabelSelector | None
) -> bool:
    return (
        volume.status.phase == "Available"
        and all(mode in volume.spec.access_modes for mode in claim.spec.access_modes)
        and (selector is None or selects(selector, volume.metadata.labels))
    )
