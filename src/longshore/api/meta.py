"""What all objects have in common, and the one way in which a change of an object is told."""

from typing import Generic, TypeVar, dataclass_transform

import msgspec


# Tells type checkers what msgspec does anyway: subclasses are frozen too.
@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class ApiStruct(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """Base of every API object: camel case outside, snake case inside.

    The structs hold no cycles, so the garbage collector need not walk them.
    """


class OwnerReference(ApiStruct):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class ObjectMeta(ApiStruct):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] = {}
    deletion_timestamp: str | None = None
    # Pods that a scheduler watches have only those that its plugins declare to read (see `api.kept`).
    annotations: dict[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()
    creation_timestamp: str | None = None
    generation: int = 0

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that manages the object, such as the ReplicaSet of a pod."""
        return next((owner for owner in self.owner_references if owner.controller), None)


class ApiObject(ApiStruct):
    metadata: ObjectMeta = ObjectMeta()

    @property
    def key(self) -> str:
        """`namespace/name`, or the name alone of an object without a namespace."""
        meta = self.metadata
        return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name


def kind_of(thing: ApiObject) -> type[ApiObject]:
    """The kind of the object, also if it was made by a builder, which is a class of its own."""
    return next(each for each in type(thing).__mro__ if ApiObject in each.__bases__)


T_co = TypeVar("T_co", covariant=True)


class Change(msgspec.Struct, Generic[T_co], frozen=True, gc=False):
    """One object became another: added when there is no old one, deleted when there is no new one."""

    old: T_co | None
    new: T_co | None

    @property
    def object(self) -> T_co:
        """The newest version that is known."""
        if self.new is not None:
            return self.new
        if self.old is None:
            raise ValueError("a change without an object")
        return self.old
