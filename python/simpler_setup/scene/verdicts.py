"""What became of each case of a stand-alone run: printed as it comes, summed up at the end, and told to a dispatcher.

Printed lines are `  Class::case ...`, then `  Class::case PASSED`, `FAILED: reason` or `SKIPPED: reason`. A child of a
dispatcher also writes its journal, one JSON line when a case starts and one when it ends, so that its dispatcher knows
which case a child that died was in.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from pathlib import Path
from typing import NamedTuple

#: Environment variable that makes a process a dispatcher's child: the path of its journal.
JOURNAL_VARIABLE = "SIMPLER_CASE_JOURNAL"

PASSED, FAILED, SKIPPED = "PASSED", "FAILED", "SKIPPED"
_SETUP = Path(__file__).resolve().parents[1]
_COUNTED_FROM = 10  # selected cases from which on the lines say how far the run is
_STYLES = {PASSED: "green", FAILED: "bold red", SKIPPED: "yellow"}
_PLAIN_ERRORS = (AssertionError, RuntimeError, ValueError, OSError)  # their text says enough without the type's name


class Verdict(NamedTuple):
    """How one case ended. `text` says why it failed or was skipped."""

    label: str
    outcome: str
    text: str = ""
    seconds: float = 0.0


class Journal:
    """Starts and ends of cases, appended to a file by one process and read by another after that one is gone."""

    def __init__(self, path: str | os.PathLike[str]):
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def started(self, label: str) -> None:
        self._write({"started": label})

    def ended(self, verdict: Verdict) -> None:
        self._write({"ended": list(verdict)})

    def _write(self, entry: dict[str, object]) -> None:
        os.write(self._file, (json.dumps(entry) + "\n").encode())

    @staticmethod
    def read(path: Path) -> tuple[list[Verdict], str | None]:
        """(the ended cases, the label of the one that was running)."""
        ended: list[Verdict] = []
        running: str | None = None
        for line in path.read_bytes().splitlines() if path.exists() else []:
            try:
                entry = json.loads(line)
            except ValueError:
                continue  # the process died while it wrote
            if "started" in entry:
                running = entry["started"]
            else:
                ended.append(Verdict(*entry["ended"]))
                running = None
        return ended, running


def describe(error: BaseException) -> str:
    """The text of a failure, with the type's name where the text alone does not tell."""
    text = str(error) or type(error).__name__
    if isinstance(error, SystemExit):
        return f"the test ended the process: sys.exit({error.code!r})"
    return text if isinstance(error, _PLAIN_ERRORS) else f"{type(error).__name__}: {text}"


def user_traceback(error: BaseException) -> str:
    """The traceback from the user's first frame on; "" when the error came from the framework alone."""
    frames = traceback.extract_tb(error.__traceback__)
    first = next((i for i, frame in enumerate(frames) if not frame.filename.startswith(_OWN_FOLDERS)), None)
    if first is None or isinstance(error, SystemExit):
        return ""
    lines = ["Traceback (most recent call last):\n", *traceback.format_list(frames[first:])]
    return "".join([*lines, *traceback.format_exception_only(type(error), error)])


#: The packages `simpler` and `simpler_setup`, Python's own library, and where Python imports from.
_OWN_FOLDERS = (
    *(str(folder) + os.sep for folder in (_SETUP, _SETUP.parent / "simpler", Path(os.__file__).parent)),
    "<frozen importlib",
)


def _gist(text: str) -> str:
    """One line of a failure's text: the first, with what is wrong with the golden values or what the compiler said."""
    first, *rest = text.splitlines() or [""]
    if first.endswith(":"):
        more = next((line.strip() for line in rest if ": error:" in line), "")
    else:
        more = f"; {rest[0].strip()}" if rest and first.startswith("Golden mismatch") else ""
    return f"{first}{' ' if first.endswith(':') else ''}{more}".rstrip()


class Report:
    """Prints and collects verdicts. Used from one thread, except that `give_up` may come from a watchdog's."""

    def __init__(self, total: int = 0):
        self.verdicts: list[Verdict] = []
        self._total = total
        self._began = self._case_began = time.monotonic()
        path = os.environ.get(JOURNAL_VARIABLE)
        self._journal = Journal(path) if path else None
        self._terminal = sys.stdout.isatty()

    @property
    def failed(self) -> bool:
        return any(verdict.outcome == FAILED for verdict in self.verdicts)

    def start(self, label: str) -> None:
        self._case_began = time.monotonic()
        if self._journal is not None:
            self._journal.started(label)
        counted = f"  [{len(self.verdicts) + 1} of {self._total}]" if self._total >= _COUNTED_FROM else ""
        print(f"  {label} ...{counted}", flush=True)

    def passed(self, label: str) -> None:
        self._end(label, PASSED)

    def skipped(self, label: str, reason: str) -> None:
        self._end(label, SKIPPED, reason)

    def failed_with(self, label: str, error: BaseException) -> None:
        sys.stderr.write(user_traceback(error))
        self._end(label, FAILED, describe(error))

    def give_up(self, label: str, text: str) -> None:
        """The case that runs will not end: a watchdog says so before it ends the process."""
        self._end(label, FAILED, text)

    def adopt(self, verdicts: list[Verdict]) -> None:
        """Take over what a child printed itself."""
        self.verdicts += verdicts

    def lost(self, label: str, text: str) -> None:
        """A case whose process is gone."""
        self._case_began = time.monotonic()
        self._end(label, FAILED, text)

    def _end(self, label: str, outcome: str, text: str = "") -> None:
        verdict = Verdict(label, outcome, text, time.monotonic() - self._case_began)
        self.verdicts.append(verdict)
        if self._journal is not None:
            self._journal.ended(verdict)
        first, *rest = text.splitlines() or [""]
        self._print(f"  {label} {outcome}{': ' if first else ''}{first}", outcome)
        for line in rest:
            print(f"    {line}")
        sys.stdout.flush()

    def _print(self, line: str, outcome: str) -> None:
        if not self._terminal:
            print(line)
            return
        from rich.console import Console  # only a terminal pays for it

        Console(highlight=False, soft_wrap=True).print(line, style=_STYLES[outcome], markup=False)

    def summary(self, note: str = "") -> None:
        """The last lines: how many passed, and each failure again, below whatever the runs logged."""
        if self._journal is not None:
            return  # the dispatcher sums up
        sys.stderr.flush()
        counts = {outcome: sum(v.outcome == outcome for v in self.verdicts) for outcome in _STYLES}
        words = [f"{count} {outcome.lower()}" for outcome, count in counts.items() if count]
        seconds = time.monotonic() - self._began
        print()
        for verdict in self.verdicts:
            if verdict.outcome == FAILED:
                reason = _gist(verdict.text)
                self._print(f"  FAILED {verdict.label}: {reason}", FAILED)
        headline = f"=== {', '.join(words) or 'nothing ran'} in {seconds:.2f} s{note} ==="
        self._print(headline, FAILED if self.failed else PASSED)
        sys.stdout.flush()
