"""The levels of the worker tree."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["WorkerLevel", "span_prefix"]


class WorkerLevel(IntEnum):
    """What one worker drives. Number 1 is not used."""

    core = 0
    chip = 2
    host = 3
    network1 = 4
    network2 = 5
    network3 = 6


def span_prefix(level: int) -> str:
    """The level's name, with which its trace spans begin; ValueError for a number that names none."""
    try:
        return WorkerLevel(level).name
    except ValueError:
        known = ", ".join(f"{member.value} {member.name}" for member in WorkerLevel)
        raise ValueError(f"level is {level!r}; known levels: {known}") from None
