"""The methods that all builders have. Each one returns a changed copy."""

from typing import Any, Self

import msgspec

from longshore.api import ObjectMeta, OwnerReference

replace = msgspec.structs.replace


class MetadataBuilder:
    """A mixin with the methods for metadata."""

    __slots__ = ()

    metadata: ObjectMeta

    def labels(self, **labels: str) -> Self:
        """Add labels. Write names with a domain as `**{"example.com/name": "value"}`."""
        return self._with_metadata(labels={**self.metadata.labels, **labels})

    def annotations(self, **annotations: str) -> Self:
        return self._with_metadata(annotations={**self.metadata.annotations, **annotations})

    def uid(self, uid: str) -> Self:
        """Set another UID, to make a different object with the same name."""
        return self._with_metadata(uid=uid)

    def owner(self, kind: str, name: str, *, api_version: str = "apps/v1") -> Self:
        """Set the controller that manages the object. Its UID is derived from its name, as in builders."""
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
        """Mark the object as being deleted."""
        return self._with_metadata(deletion_timestamp="2026-01-01T00:00:00Z")

    def _with_metadata(self, **fields: object) -> Self:
        struct: Any = self
        changed: Self = replace(struct, metadata=replace(self.metadata, **fields))
        return changed


def uid_of(name: str, namespace: str = "") -> str:
    return f"uid-{namespace}-{name}" if namespace else f"uid-{name}"


def metadata(name: str, namespace: str = "", **labels: str) -> ObjectMeta:
    return ObjectMeta(name=name, namespace=namespace, uid=uid_of(name, namespace), labels=labels)
