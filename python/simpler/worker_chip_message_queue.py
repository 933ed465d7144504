"""Words of the message queues between a host worker and its chips."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["WorkerChipQueueOpcode"]


class WorkerChipQueueOpcode(IntEnum):
    """What one message is."""

    INVALID = 0
    DATA = 1
    STOP = 2
    ERROR = 3
