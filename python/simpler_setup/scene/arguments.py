"""What a scene passes to its run: named tensors, then named scalars, in order."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any, NamedTuple

from ..errors import SceneError
from . import arrays


class TensorArg(NamedTuple):
    """A named tensor: torch tensor, NumPy array, or writable buffer."""

    name: str
    value: Any


class Scalar(NamedTuple):
    """A named scalar: int, float (passed as single precision), bool, or a ctypes value."""

    name: str
    value: Any


def _clone_scalar(value: Any) -> Any:
    try:
        return copy.copy(value)
    except (TypeError, ValueError):  # a ctypes pointer cannot be copied; it is not changed in place either
        return value


class TaskArgsBuilder:
    """Ordered arguments of a run; each is also an attribute of its name.

    Tensors come before scalars and names are unique (SceneError, a ValueError, otherwise; the builder is unchanged).
    """

    def __init__(self, *specs: TensorArg | Scalar):
        self.specs: list[TensorArg | Scalar] = []
        self._values: dict[str, Any] = {}
        self._rehosted: dict[str, Any] = {}  # tensor name -> Buffer that holds it while a host-level run uses it
        for spec in specs:
            if isinstance(spec, TensorArg):
                self.add_tensor(*spec)
            elif isinstance(spec, Scalar):
                self.add_scalar(*spec)
            else:
                raise TypeError(
                    f"TaskArgsBuilder takes TensorArg(name, value) and Scalar(name, value), got {type(spec).__name__}"
                )

    def add_tensor(self, name: str, value: Any) -> None:
        """Append a tensor; not allowed after a scalar."""
        late = next((spec.name for spec in self.specs if isinstance(spec, Scalar)), None)
        if late is not None:
            raise SceneError(f"tensor {name!r} comes after scalar {late!r}; add all tensors before the first scalar")
        self._add(TensorArg(name, value))

    def add_scalar(self, name: str, value: Any) -> None:
        """Append a scalar."""
        self._add(Scalar(name, value))

    def tensor_names(self) -> list[str]:
        return [spec.name for spec in self.specs if isinstance(spec, TensorArg)]

    def clone(self) -> TaskArgsBuilder:
        """A builder with copies of all tensors and scalars."""
        return TaskArgsBuilder(
            *(
                TensorArg(spec.name, arrays.clone(getattr(self, spec.name)))
                if isinstance(spec, TensorArg)
                else Scalar(spec.name, _clone_scalar(spec.value))
                for spec in self.specs
            )
        )

    def _add(self, spec: TensorArg | Scalar) -> None:
        name = spec.name
        if not isinstance(name, str) or not name:
            raise SceneError(f"an argument name must be a non-empty string, got {name!r}")
        if name in self._values:
            raise SceneError(f"argument {name!r} is given twice")
        if name in vars(self) or hasattr(type(self), name):
            raise SceneError(f"argument name {name!r} is a member of TaskArgsBuilder; choose another name")
        self._values[name] = spec.value
        self.specs.append(spec)

    def __getattr__(self, name: str) -> Any:
        values = self.__dict__.get("_values", {})
        if name in values:
            return values[name]
        raise AttributeError(f"no argument {name!r}; there are {', '.join(values) or 'none'}")

    def __repr__(self) -> str:
        return f"TaskArgsBuilder({', '.join(f'{type(s).__name__}({s.name!r})' for s in self.specs)})"


class CallableNamespace:
    """Callables by attribute, as a host-level orchestration receives them: `ns.name`, `ns.name_sig`."""

    def __init__(self, entries: dict[str, Any] | None = None):
        self._entries = dict(entries or {})
        self._kept: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        entries = self.__dict__.get("_entries", {})
        if name in entries:
            return entries[name]
        raise AttributeError(f"no callable {name!r}; there are {', '.join(entries) or 'none'}")

    def keep(self, *objects: Any) -> Any:
        """Keep objects alive as long as this namespace. Returns what it got: one object, or a tuple of several."""
        self._kept.extend(objects)
        if not objects:
            return None
        return objects[0] if len(objects) == 1 else objects

    def __iter__(self) -> Iterable[str]:
        return iter(self._entries)
