from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class SchedulePlanRequest(_message.Message):
    __slots__ = ("namespace", "podSet", "scheduledPod", "eligibleNodes")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    PODSET_FIELD_NUMBER: _ClassVar[int]
    SCHEDULEDPOD_FIELD_NUMBER: _ClassVar[int]
    ELIGIBLENODES_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    podSet: str
    scheduledPod: str
    eligibleNodes: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, namespace: _Optional[str] = ..., podSet: _Optional[str] = ..., scheduledPod: _Optional[str] = ..., eligibleNodes: _Optional[_Iterable[str]] = ...) -> None: ...

class SchedulePlanResponse(_message.Message):
    __slots__ = ("assignments",)
    class AssignmentsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ASSIGNMENTS_FIELD_NUMBER: _ClassVar[int]
    assignments: _containers.ScalarMap[str, str]
    def __init__(self, assignments: _Optional[_Mapping[str, str]] = ...) -> None: ...
