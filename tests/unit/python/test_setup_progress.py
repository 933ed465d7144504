"""Progress of long steps: quiet while short, lines without a terminal, a bar on one."""

import io

import pytest
from simpler_setup.scene import progress
from simpler_setup.scene.progress import Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def steps(stream, clock, seconds):
    with Progress("compiling", "sources", stream) as one:
        one.total(len(seconds))
        for second in seconds:
            clock[0] = second
            one.advance()
    return stream.getvalue()


def test_a_short_step_shows_nothing(clock):
    assert steps(io.StringIO(), clock, [0.1, 0.5, 0.9]) == ""


def test_a_long_one_shows_a_line_now_and_then_and_none_at_the_end(clock):
    text = steps(io.StringIO(), clock, [0.5, 2, 3, 4, 9, 10])
    assert text == "compiling: 2 of 6 sources, 2 s\ncompiling: 5 of 6 sources, 9 s\n"


def test_a_terminal_gets_a_bar(clock, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    text = steps(Terminal(), clock, [0.5, 2, 3, 4])
    assert "compiling" in text and "sources" in text and "2/4" in text
