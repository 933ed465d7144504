"""The exceptions that simpler raises.

Each derives from SimplerError and from the built-in exception that fits, so both `except SimplerError` and
`except ValueError` work. Pure Python: usable without the compiled extension.
"""

from __future__ import annotations

import re
from typing import Any

__all__ = [
    "ArgumentError",
    "ArgumentIndexError",
    "ArgumentTypeError",
    "DeviceError",
    "OutOfMemoryError",
    "RunError",
    "SimplerError",
    "StateError",
    "UnknownHandleError",
    "WaitTimeoutError",
]


class SimplerError(Exception):
    """Base of all. `code` is the native code, -1 when the failure is not a run's."""

    code: int = -1

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""  # KeyError would show a quoted repr


class RunError(SimplerError, RuntimeError):
    """A run, or the loading of its code, failed with a code.

    code  negative; name  the code's name, "" if unknown; hint  what to do, "" if unknown.
    """

    def __init__(self, message: str, code: int = -1, name: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.name = name
        self.hint = hint

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.code, self.name, self.hint)


class ArgumentError(SimplerError, ValueError):
    """An argument has a value that is not allowed."""


class ArgumentTypeError(SimplerError, TypeError):
    """An argument has the wrong type."""


class ArgumentIndexError(SimplerError, IndexError):
    """An index is out of range, or a fixed capacity is exceeded."""


class UnknownHandleError(SimplerError, KeyError):
    """A handle names nothing that is registered here (any more)."""


class StateError(SimplerError, RuntimeError):
    """The object is not in a state that allows the call."""


class WaitTimeoutError(SimplerError, TimeoutError):
    """A wait ended before what it waits for. The thing waited for goes on."""


class DeviceError(SimplerError, RuntimeError):
    """The device, its driver or its simulator refused."""


class OutOfMemoryError(SimplerError, MemoryError, RuntimeError):
    """There is not enough memory on the device or the host."""


# Row n belongs to simpler::ErrorKind n (src/base/status.h).
_BY_KIND: tuple[type[SimplerError], ...] = (
    RunError,
    ArgumentError,
    ArgumentTypeError,
    ArgumentIndexError,
    UnknownHandleError,
    StateError,
    WaitTimeoutError,
    DeviceError,
    OutOfMemoryError,
)

_NAMED_CAUSE = re.compile(r"([A-Z][A-Z0-9_]+): (.+)", re.DOTALL)
_RAISED_AS_RUN_ERROR = ("register_callable",)  # code that cannot be loaded fails like the run that needs it


def from_status(kind: int, code: int, message: str, operation: str) -> SimplerError:
    """The exception for a native failure. `operation` is what was attempted, "" for the check of an argument."""
    cls = _BY_KIND[kind] if 0 <= kind < len(_BY_KIND) else RunError
    if operation in _RAISED_AS_RUN_ERROR and not issubclass(cls, (StateError, OutOfMemoryError)):
        cls = RunError
    if cls is RunError:
        named = _NAMED_CAUSE.fullmatch(message)
        name, rest = named.groups() if named else ("", message)
        _, _, hint = rest.partition(". ")
        return RunError(f"{failure_phrase(operation, code)}: {message}", code, name, hint.strip())
    if operation and issubclass(cls, (StateError, DeviceError)):
        message = f"{failure_phrase(operation, code)}: {message}"
    error = cls(message)
    error.code = code
    return error


def failure_phrase(operation: str, code: int) -> str:
    """What failed, in the words that programs search for in the text."""
    if operation in ("", "run"):
        return f"run failed with code {code} (run_prepared failed with code {code})"
    return f"{operation} failed with code {code}"
