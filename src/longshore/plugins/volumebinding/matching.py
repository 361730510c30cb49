"""Which of the existing volumes a claim may have: the smallest that will do, or one that is kept for it."""

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


class _Shelved(msgspec.Struct, frozen=True):
    """A volume in the order in which claims try them, with the nodes that reach it."""

    capacity: int
    name: str
    volume: PersistentVolume
    nodes: NodeSelector | None

    @classmethod
    def of(cls, volume: PersistentVolume) -> "_Shelved":
        capacity = value(volume.spec.capacity.get("storage", "0"))
        return cls(capacity, volume.metadata.name, volume, nodes_of(volume))


class VolumeShelf:
    """The volumes by class if they are free, or by the claim that they are kept for; the smallest first."""

    def __init__(self, cluster: Callable[[], ClusterState], assumed: Assumed[PersistentVolume]) -> None:
        self._cluster = cluster
        self._assumed = assumed
        self._version = -1
        self._by_name: dict[str, _Shelved] = {}
        self._shelves: dict[str | tuple[str, str], list[_Shelved]] = {}

    def candidates(self, claim: PersistentVolumeClaim) -> "Candidates":
        """Raises `InvalidSelector` if the claim's selector makes no sense."""
        self._catch_up()
        meta = claim.metadata
        free = self._shelves.get(class_of_claim(claim), ())
        kept = self._shelves.get((meta.namespace, meta.name), ())
        return Candidates(claim, [*kept, *free], self._assumed)

    def _catch_up(self) -> None:
        cluster = self._cluster()
        version = cluster.version(PersistentVolume)
        if version == self._version:
            return
        names = cluster.changed_since(PersistentVolume, self._version)
        self._version = version
        if names is None:
            self._by_name, self._shelves = {}, {}
            for volume in cluster.objects(PersistentVolume):
                shelved = self._by_name[volume.metadata.name] = _Shelved.of(volume)
                self._shelves.setdefault(_shelf_of(volume), []).append(shelved)
            for shelf in self._shelves.values():
                shelf.sort(key=_place)
            return
        for name in dict.fromkeys(names):
            self._change(name, cluster.get(PersistentVolume, name))

    def _change(self, name: str, volume: PersistentVolume | None) -> None:
        old = self._by_name.pop(name, None)
        if old is not None:
            shelf = self._shelves[_shelf_of(old.volume)]
            del shelf[bisect_left(shelf, _place(old), key=_place)]
            if not shelf:
                del self._shelves[_shelf_of(old.volume)]
        if volume is not None:
            new = self._by_name[name] = _Shelved.of(volume)
            insort(self._shelves.setdefault(_shelf_of(volume), []), new, key=_place)


class Candidates:
    """Volumes for one claim, the best first. If one is kept for it, there is no other."""

    def __init__(
        self, claim: PersistentVolumeClaim, shelved: Iterable[_Shelved], assumed: Assumed[PersistentVolume]
    ) -> None:
        self.claim = claim
        size, wanted_class = size_of(claim), class_of_claim(claim)
        selector = claim.spec.selector
        if selector is not None:
            # Raises even if there is no volume to ask about.
            selects(selector, {})
        found = []
        for one in shelved:
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
        """On which nodes there is none."""
        if not self._found:
            return True
        return ~Places(*(one.nodes for one in self._found)).where(nodes)

    def pick(self, node: Node, taken: Container[str]) -> PersistentVolume | None:
        """The best one for the node, of those that are not taken."""
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
        """Places of volumes by a label that their node must have; most are of a single node, or of a zone."""
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
    """For each claim, the nodes on which no volume is left for it: none is given to two claims."""
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
    """A volume for each claim in turn, as far as there are any."""
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


def _place(one: _Shelved) -> tuple[int, str]:
    return one.capacity, one.name


def _shelf_of(volume: PersistentVolume) -> str | tuple[str, str]:
    kept = volume.spec.claim_ref
    return class_of_volume(volume) if kept is None else (kept.namespace, kept.name)


def _fits(claim: PersistentVolumeClaim, volume: PersistentVolume) -> bool:
    """What holds even for a volume that is kept for the claim."""
    asked, offered = claim.spec, volume.spec
    return (
        (offered.claim_ref is None or belongs_to(volume, claim))
        and (asked.volume_mode or _FILESYSTEM) == (offered.volume_mode or _FILESYSTEM)
        and (asked.volume_attributes_class_name or "") == (offered.volume_attributes_class_name or "")
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
