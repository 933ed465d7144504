"""Typed errors of the tool-chain and the scene-test framework.

They derive from SimplerError and from the built-in error that callers expect (RuntimeError for a failed compile,
ValueError for a bad declaration, AssertionError for a wrong result), so both `except` forms work.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from simpler.errors import ArgumentError, SimplerError


class CompileError(SimplerError, RuntimeError):
    """A compiler, or a check of what it produced, refused a source file."""

    def __init__(self, text: str, *, source: str, command: Sequence[str] = (), output: str = "", returncode: int = 0):
        super().__init__(text)
        self.source = source
        self.command = list(command)
        self.output = output
        self.returncode = returncode


class MissingSymbolError(CompileError):
    """A shared object lacks the function that the runtime has to call."""


class ToolchainError(SimplerError, RuntimeError):
    """No usable compiler: not found, too old, or of an unknown kind."""


class SourceNotFoundError(SimplerError, FileNotFoundError):
    """A kernel or orchestration source does not exist."""


class SceneError(ArgumentError):
    """A scene test is declared or fed wrongly: an unknown key, a signature that does not fit, an unusable array."""


class GoldenMismatch(SimplerError, AssertionError):
    """Outputs of a run differ from the golden values."""


class SanitizerFinding(SimplerError, AssertionError):
    """A sanitizer reported something while a case ran. The whole report is on stderr."""


def nearest(value: object, allowed: Iterable[str], closeness: float = 0.6) -> str | None:
    """The allowed name closest to `value`, if one is close enough to be a likely typo."""
    import difflib  # slow to import, and needed for messages only

    close = difflib.get_close_matches(str(value), [str(name) for name in allowed], n=1, cutoff=closeness)
    return close[0] if close else None


def unknown_name(what: str, value: object, allowed: Iterable[str]) -> str:
    """The sentence for a name outside a fixed set: the value, what is allowed, and the likely intention."""
    names = list(allowed)
    text = f"unknown {what} {value!r}; allowed: {', '.join(names)}"
    guess = nearest(value, names)
    return f"{text}. Did you mean {guess!r}?" if guess else text
