"""Which resource is meant: its group, version and plural, and how its objects are decoded."""

from typing import Generic, TypeVar

import msgspec

from longshore.api.meta import ApiObject
from longshore.kube.codec import Codec
from longshore.kube.protobuf import ProtobufCodec, decode_node, decode_pod

T = TypeVar("T", bound=ApiObject)


class Resource(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """A kind of object on the API server.

    WIDGETS = Resource(group="example.com", version="v1", plural="widgets", codec=JsonCodec(Widget))
    """

    plural: str
    codec: Codec[T]
    group: str = ""
    version: str = "v1"
    namespaced: bool = True

    def path(self, *, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The address of the collection (of one namespace or of all), an object, or a part of one."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        scope = f"/namespaces/{namespace}" if namespace and self.namespaced else ""
        path = f"{root}{scope}/{self.plural}"
        if name:
            path += f"/{name}"
        if subresource:
            path += f"/{subresource}"
        return path

    def __str__(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural


PODS = Resource(plural="pods", codec=ProtobufCodec(decode_pod))
NODES = Resource(plural="nodes", codec=ProtobufCodec(decode_node), namespaced=False)
