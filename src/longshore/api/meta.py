"""The fields that all objects have, and `Change`, the form in which every change to an object is reported."""

from typing import Generic, TypeVar, dataclass_transform

import msgspec


# For type checkers: msgspec makes subclasses frozen too.
@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class ApiStruct(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """The base of every API struct: camel case in JSON, snake case in Python.

    The structs hold no reference cycles, so the garbage collector does not have to track them.
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
        """`namespace/name`, or just the name if the object has no namespace."""
        meta = self.metadata
        return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name


def kind_of(obj: ApiObject) -> type[ApiObject]:
    """Return the kind of the object. The builders of `longshore.testing` are subclasses of their kinds."""
    return next(each for each in type(obj).__mro__ if ApiObject in each.__bases__)


T_co = TypeVar("T_co", covariant=True)


class Change(msgspec.Struct, Generic[T_co], frozen=True, gc=False):
    """One change to an object: it was added if `old` is None, and deleted if `new` is None."""

    old: T_co | None
    new: T_co | None

    @property
    def object(self) -> T_co:
        """The newest known version of the object."""
        if self.new is not None:
            return self.new
        if self.old is None:
            raise ValueError("a change without an object")
        return self.old
