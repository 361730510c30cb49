"""What builders of all kinds can say: each method returns a changed copy."""

from typing import Any, Self

import msgspec

from longshore.api import ObjectMeta, OwnerReference

replace = msgspec.structs.replace


class MetadataBuilder:
    """Methods about metadata, to be mixed into a struct."""

    __slots__ = ()

    metadata: ObjectMeta

    def labels(self, **labels: str) -> Self:
        """Labels besides those said before; names with a domain as `**{"example.com/name": "value"}`."""
        return self._with_metadata(labels={**self.metadata.labels, **labels})

    def annotations(self, **annotations: str) -> Self:
        return self._with_metadata(annotations={**self.metadata.annotations, **annotations})

    def uid(self, uid: str) -> Self:
        """Another UID: another object, should the name be the same."""
        return self._with_metadata(uid=uid)

    def owner(self, kind: str, name: str, *, api_version: str = "apps/v1") -> Self:
        """Managed by this controller, whose UID follows from its name as those of builders do."""
        owner = OwnerReference(
            api_version=api_version,
            kind=kind,
            name=name,
            uid=uid_of(name, self.metadata.namespace),
            controller=True,
        )
        return self._with_metadata(owner_references=(owner,))

    def created(self, timestamp: str) -> Self:
        return self._with_metadata(creation_timestamp=timestamp)

    def deleting(self) -> Self:
        """Its deletion was asked for and has not ended yet."""
        return self._with_metadata(deletion_timestamp="2026-01-01T00:00:00Z")

    def _with_metadata(self, **fields: object) -> Self:
        struct: Any = self
        changed: Self = replace(struct, metadata=replace(self.metadata, **fields))
        return changed


def uid_of(name: str, namespace: str = "") -> str:
    return f"uid-{namespace}-{name}" if namespace else f"uid-{name}"


def metadata(name: str, namespace: str = "", **labels: str) -> ObjectMeta:
    return ObjectMeta(name=name, namespace=namespace, uid=uid_of(name, namespace), labels=labels)
