"""What a resource of the API server is, and those that are read or written by name.

All that can be watched are in the table of `longshore.kube.kinds`.
"""

from functools import partial
from typing import Generic, TypeVar

import msgspec

from longshore.api import Pod, SchedulePlan, ScheduleTrigger
from longshore.api.meta import ApiObject
from longshore.api.pod_set import GROUP, VERSION
from longshore.framework.reads import EVERYTHING, NOTHING, Reads, kept_of
from longshore.kube.codec import Codec, JsonCodec
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
    # The name to show, if another resource has the same plural.
    alias: str = ""

    def path(self, *, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Return the path of the collection (of one namespace or of all), an object, or a subresource."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        scope = f"/namespaces/{namespace}" if namespace and self.namespaced else ""
        path = f"{root}{scope}/{self.plural}"
        if name:
            path += f"/{name}"
        if subresource:
            path += f"/{subresource}"
        return path

    def __str__(self) -> str:
        return self.alias or (f"{self.plural}.{self.group}" if self.group else self.plural)


PODS = Resource(plural="pods", codec=ProtobufCodec(decode_pod))
WHOLE_PODS = Resource(plural="pods", codec=ProtobufCodec(partial(decode_pod, kept=kept_of(EVERYTHING))))
NODES = Resource(plural="nodes", codec=ProtobufCodec(decode_node), namespaced=False)
SCHEDULE_TRIGGERS = Resource(
    group=GROUP, version=VERSION, plural="scheduletriggers", codec=JsonCodec(ScheduleTrigger)
)
SCHEDULE_PLANS = Resource(group=GROUP, version=VERSION, plural="scheduleplans", codec=JsonCodec(SchedulePlan))


def pods_with(reads: Reads) -> Resource[Pod]:
    """Return pods with the annotations and conditions that plugins read."""
    if reads == NOTHING:
        return PODS
    return Resource(plural="pods", codec=ProtobufCodec(partial(decode_pod, kept=kept_of(reads))))
