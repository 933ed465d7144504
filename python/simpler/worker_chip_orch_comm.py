"""Words of the signals between a host worker and its chips."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["NotifyOp", "WaitCmp"]


class NotifyOp(IntEnum):
    """What a notification does to a counter."""

    Set = 0
    Add = 1


class WaitCmp(IntEnum):
    """How a wait compares a counter with its value."""

    EQ = 0
    NE = 1
    GT = 2
    GE = 3
    LT = 4
    LE = 5
