"""How far a long step is: a bar on a terminal, now and then a line elsewhere, nothing while the step is short."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType
from typing import Any, TextIO

_QUIET_S = 1.0  # shorter steps show nothing
_LINE_EVERY_S = 5.0  # how often a line comes when there is no terminal


class Progress:
    """`with Progress("compiling", "sources") as p: p.total(n); p.advance() ...`; advance may come from any thread."""

    def __init__(self, verb: str, noun: str, stream: TextIO | None = None):
        self._verb, self._noun = verb, noun
        self._stream = stream or sys.stderr
        self._lock = threading.Lock()
        self._total = self._done = 0
        self._began = self._last = time.monotonic()
        self._bar: Any = None
        self._task: Any = None
        self._said = False

    def total(self, count: int) -> None:
        self._total = count

    def advance(self) -> None:
        """One more is done."""
        with self._lock:
            self._done += 1
            now = time.monotonic()
            if self._bar is None and now - self._began > _QUIET_S and self._done < self._total:
                if self._stream.isatty():
                    self._open_bar()
                elif not self._said or now - self._last > _LINE_EVERY_S:
                    self._said, self._last = True, now
                    text = f"{self._verb}: {self._done} of {self._total} {self._noun}, {now - self._began:.0f} s"
                    print(text, file=self._stream, flush=True)
            if self._bar is not None:
                self._bar.update(self._task, completed=self._done)

    def _open_bar(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar

        columns = (TextColumn(self._verb), BarColumn(), MofNCompleteColumn(), TextColumn(self._noun))
        self._bar = Bar(*columns, TimeElapsedColumn(), console=Console(file=self._stream), transient=True)
        self._task = self._bar.add_task(self._verb, total=self._total, completed=self._done)
        self._bar.start()

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
