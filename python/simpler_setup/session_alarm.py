"""Ending what takes too long: show where every thread is, then end the process.

A thread waits, not a signal: pytest-timeout owns SIGALRM's timer, and a Python signal handler would not run while the
main thread sits in native code.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from typing import Callable

EXIT_CODE = 124
_STACKS_S = 1.0  # what asked processes get to write their stacks
_SECOND_CHANCE_S = 5.0  # after that the stacks come from a thread that needs no interpreter


def answer_stack_requests() -> None:
    """Make this process write all its stacks to stderr on SIGUSR1."""
    faulthandler.register(signal.SIGUSR1, file=os.dup(2), all_threads=True, chain=True)


class SessionAlarm:
    """Ends the process after `seconds` unless cancelled. `children` gives the process ids that answer SIGUSR1.

    Construct it while stderr is the user's own: the stacks go there, past any capture.
    """

    def __init__(self, seconds: float, children: Callable[[], list[int]]):
        self._seconds, self._children = seconds, children
        self._stderr = os.dup(2)
        self._timer = threading.Timer(seconds, self._fire)
        self._timer.daemon = True

    def start(self) -> None:
        self._timer.start()

    def cancel(self) -> None:
        self._timer.cancel()
        with contextlib.suppress(OSError):
            os.close(self._stderr)

    def _fire(self) -> None:
        _dump_stacks(self._stderr, f"session: no end after {self._seconds:g} s", self._children())
        os._exit(EXIT_CODE)


def _say(stderr: int, text: str) -> None:
    with contextlib.suppress(OSError):
        os.write(stderr, text.encode())


def _dump_stacks(stderr: int, what: str, children: list[int]) -> None:
    """Stacks of this process, then of children, which are killed."""
    _say(stderr, f"\n::group::HUNG {what}, pid {os.getpid()}\n")
    faulthandler.dump_traceback(file=stderr, all_threads=True)
    for pid in children:
        _say(stderr, f"stacks of child {pid}:\n")
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGUSR1)
    if children:
        time.sleep(_STACKS_S)
    _say(stderr, "::endgroup::\n")
    for pid in children:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)


@contextlib.contextmanager
def time_limit(seconds: float, what: str, last_words: Callable[[str], None]) -> Iterator[None]:
    """Ends the process with code 1 when the block takes longer than `seconds` (0: no limit).

    All stacks go to stderr, then `last_words` gets the sentence about it, on another thread. If even the interpreter is
    stuck (native code that never returns and holds its lock), faulthandler's own thread ends the process soon after.
    """
    if not seconds:
        yield
        return
    stderr = os.dup(2)

    def fire() -> None:
        _dump_stacks(stderr, f"{what}: no end after {seconds:g} s", [])
        last_words(f"no end after {seconds:g} s; the stacks of all threads are on stderr")
        sys.stdout.flush()
        os._exit(1)

    timer = threading.Timer(seconds, fire)
    timer.daemon = True
    timer.start()
    faulthandler.dump_traceback_later(seconds + _SECOND_CHANCE_S, exit=True, file=stderr)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
        timer.cancel()
        os.close(stderr)
