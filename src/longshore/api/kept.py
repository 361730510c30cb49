"""Annotations and conditions of pods, of which plugins can read only those that one of them declares.

A scheduler decodes and stores 100,000 pods, so it keeps little of each. Reading an annotation or a condition
that no plugin declares raises `UndeclaredRead` rather than returning nothing.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

ALL = "*"


class UndeclaredRead(Exception):
    """A plugin reads an annotation or a condition that no plugin of the scheduler declares."""


class Names:
    """The names of the annotations, or of the conditions, that are kept of a pod."""

    def __init__(self, declared: Iterable[str], *, what: str, field: str) -> None:
        """`what` is the word for one of them in messages; `field` is the field of `Reads` that declares it.

        A name that ends in `*` stands for all names with that prefix.
        """
        self._names = frozenset(declared)
        self._prefixes = tuple(name.removesuffix(ALL) for name in self._names if name.endswith(ALL))
        self._what = what
        self._field = field
        self.all = ALL in self._names
        # What is kept of a pod that has nothing of it.
        self.no_annotations = KeptAnnotations(self, {})
        self.no_conditions = KeptConditions(self, ())

    @property
    def exact(self) -> frozenset[str] | None:
        """The names, or None if some of them are prefixes."""
        return None if self._prefixes else self._names

    def __contains__(self, name: str) -> bool:
        return name in self._names or name.startswith(self._prefixes)

    def __bool__(self) -> bool:
        return bool(self._names)

    def check(self, name: str) -> None:
        """Raise UndeclaredRead if this name is not kept."""
        if name not in self:
            raise UndeclaredRead(
                f'the {self._what} "{name}" of the pod is not kept: declare it in the plugin, '
                f'reads = Reads({self._field}=("{name}",))'
            )

    def check_all(self) -> None:
        """Raise UndeclaredRead unless all names are kept."""
        if not self.all:
            raise UndeclaredRead(
                f"not every {self._what} of the pod is kept: read each by its name, or declare all of them "
                f'in the plugin, reads = Reads({self._field}=("{ALL}",))'
            )


def _whole(base: type, method: str) -> Callable[..., Any]:
    """Return the method of the base class, preceded by a check that everything is kept."""
    unchecked = getattr(base, method)

    def call(self: Any, *args: Any) -> Any:
        self.names.check_all()
        return unchecked(self, *args)

    return call


def _by_name(base: type, method: str) -> Callable[..., Any]:
    """Return the method of the base class, preceded by a check that this name is kept."""
    unchecked = getattr(base, method)

    def call(self: Any, name: str, *args: Any) -> Any:
        self.names.check(name)
        return unchecked(self, name, *args)

    return call


def _compared(base: type, method: str) -> Callable[..., Any]:
    """Return the comparison of the base class, preceded by a check that both values are comparable.

    They are if the same names are kept of both, or everything.
    """
    unchecked = getattr(base, method)

    def call(self: Any, other: object) -> Any:
        names = other.names if isinstance(other, (KeptAnnotations, KeptConditions)) else None
        if names is not self.names:
            self.names.check_all()
            if names is not None:
                names.check_all()
        return unchecked(self, other)

    return call


class KeptAnnotations(dict[str, str]):
    """The annotations of a pod that are kept."""

    __slots__ = ("names",)

    def __init__(self, names: Names, annotations: Mapping[str, str]) -> None:
        super().__init__(annotations)
        self.names = names

    __getitem__ = _by_name(dict, "__getitem__")
    __contains__ = _by_name(dict, "__contains__")
    __delitem__ = _by_name(dict, "__delitem__")
    get = _by_name(dict, "get")
    setdefault = _by_name(dict, "setdefault")
    pop = _by_name(dict, "pop")
    __iter__ = _whole(dict, "__iter__")
    __reversed__ = _whole(dict, "__reversed__")
    __len__ = _whole(dict, "__len__")
    keys = _whole(dict, "keys")
    values = _whole(dict, "values")
    items = _whole(dict, "items")
    copy = _whole(dict, "copy")
    popitem = _whole(dict, "popitem")
    __or__ = _whole(dict, "__or__")
    __ror__ = _whole(dict, "__ror__")
    __ior__ = _whole(dict, "__ior__")
    __eq__ = _compared(dict, "__eq__")
    __ne__ = _compared(dict, "__ne__")
    __hash__ = None


class KeptConditions(tuple[Any, ...]):
    """The conditions of a pod that are kept. `PodStatus.condition` finds one by its type."""

    names: Names

    def __new__(cls, names: Names, conditions: Iterable[Any]) -> "KeptConditions":
        self = super().__new__(cls, conditions)
        self.names = names
        return self

    __iter__ = _whole(tuple, "__iter__")
    __len__ = _whole(tuple, "__len__")
    __getitem__ = _whole(tuple, "__getitem__")
    __contains__ = _whole(tuple, "__contains__")
    count = _whole(tuple, "count")
    index = _whole(tuple, "index")
    __add__ = _whole(tuple, "__add__")
    __mul__ = _whole(tuple, "__mul__")
    __rmul__ = _whole(tuple, "__rmul__")
    __eq__ = _compared(tuple, "__eq__")
    __ne__ = _compared(tuple, "__ne__")
    __lt__ = _compared(tuple, "__lt__")
    __le__ = _compared(tuple, "__le__")
    __gt__ = _compared(tuple, "__gt__")
    __ge__ = _compared(tuple, "__ge__")
    __hash__ = tuple.__hash__

    def __radd__(self, other: tuple[Any, ...]) -> tuple[Any, ...]:
        return (*other, *self)


def kept_conditions(conditions: tuple[Any, ...]) -> Iterator[Any]:
    """Iterate over the kept conditions without a check: for Longshore's own code, not for plugins."""
    return tuple.__iter__(conditions)


def kept_condition(conditions: tuple[Any, ...], kind: str) -> Any | None:
    """Return the condition of this type, or None if it is absent or not kept.

    For Longshore's own code, not for plugins.
    """
    return next((each for each in kept_conditions(conditions) if each.type == kind), None)
