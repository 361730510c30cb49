"""Annotations and conditions of pods, of which only those are kept that a plugin declares.

A scheduler decodes and stores 100,000 pods, so it keeps little of each. Reading an annotation or a condition
that is not kept raises `UndeclaredRead` rather than returning nothing.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

ALL = "*"


class UndeclaredRead(Exception):
    """A plugin reads an annotation or a condition that none of the plugins declares to read."""


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


def _checked(base: type, method: str) -> Callable[..., Any]:
    """Return the method of the base class, preceded by a check that everything is kept."""
    unchecked = getattr(base, method)

    def call(self: Any, *args: Any, **named: Any) -> Any:
        self.names.check_all()
        return unchecked(self, *args, **named)

    return call


class KeptAnnotations(dict[str, str]):
    """The annotations of a pod that are kept."""

    __slots__ = ("names",)

    def __init__(self, names: Names, annotations: Mapping[str, str]) -> None:
        super().__init__(annotations)
        self.names = names

    def __getitem__(self, name: str) -> str:
        self.names.check(name)
        return super().__getitem__(name)

    def __contains__(self, name: object) -> bool:
        self.names.check(str(name))
        return super().__contains__(name)

    def get(self, name: str, default: Any = None) -> Any:
        self.names.check(name)
        return super().get(name, default)

    __iter__ = _checked(dict, "__iter__")
    __len__ = _checked(dict, "__len__")
    keys = _checked(dict, "keys")
    values = _checked(dict, "values")
    items = _checked(dict, "items")
    copy = _checked(dict, "copy")
    __or__ = _checked(dict, "__or__")
    __ror__ = _checked(dict, "__ror__")


class KeptConditions(tuple[Any, ...]):
    """The conditions of a pod that are kept. `PodStatus.condition` finds one by its type."""

    names: Names

    def __new__(cls, names: Names, conditions: Iterable[Any]) -> "KeptConditions":
        self = super().__new__(cls, conditions)
        self.names = names
        return self

    __iter__ = _checked(tuple, "__iter__")
    __len__ = _checked(tuple, "__len__")
    __getitem__ = _checked(tuple, "__getitem__")
    __contains__ = _checked(tuple, "__contains__")
    __add__ = _checked(tuple, "__add__")


def kept_conditions(conditions: tuple[Any, ...]) -> Iterator[Any]:
    """Iterate over the kept conditions without a check: for Longshore's own code, not for plugins."""
    return tuple.__iter__(conditions)
