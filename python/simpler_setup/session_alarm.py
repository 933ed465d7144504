"""Ending a session that takes too long: show where every thread is, then leave with code 124.

A thread waits, not a signal: pytest-timeout owns SIGALRM's timer, and a Python signal handler would not run while the
main thread sits in native code.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import threading
import time
from typing import Callable

EXIT_CODE = 124
_STACKS_S = 1.0  # what asked processes get to write their stacks


def answer_stack_requests() -> None:
    """Make this process write all its stacks to stderr on SIGUSR1."""
    faulthandler.register(signal.SIGUSR1, file=os.dup(2), all_threads=True, chain=True)


class SessionAlarm:
    """Ends the process after `seconds` unless cancelled. `children` gives the process ids that answer SIGUSR1.

    Construct it while stderr is the user's own: the stacks go there, past any capture.
    """

    def __init__(self, seconds: int, children: Callable[[], list[int]]):
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

    def _say(self, text: str) -> None:
        with contextlib.suppress(OSError):
            os.write(self._stderr, text.encode())

    def _fire(self) -> None:
        self._say(f"\n::group::HUNG session: no end after {self._seconds} s, pid {os.getpid()}\n")
        faulthandler.dump_traceback(file=self._stderr, all_threads=True)
        children = self._children()
        for pid in children:
            self._say(f"stacks of child {pid}:\n")
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGUSR1)
        if children:
            time.sleep(_STACKS_S)
        self._say("::endgroup::\n")
        for pid in children:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        os._exit(EXIT_CODE)
