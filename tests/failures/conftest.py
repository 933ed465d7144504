"""Makes the folder's own modules importable, and keeps long cases out unless they are asked for."""

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))


def pytest_addoption(parser):
    parser.addoption("--slow", action="store_true", help="also run the cases that take more than 5 s each")


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: takes more than 5 s; runs with --slow")


def pytest_collection_modifyitems(config, items):
    if config.getoption("--slow", default=False):  # unknown if pytest was started above this folder
        return
    skip = pytest.mark.skip(reason="takes more than 5 s; run with --slow")
    for item in items:
        if HERE in item.path.parents and item.get_closest_marker("slow"):
            item.add_marker(skip)


@pytest.fixture(scope="module")
def worker():
    """One worker for all cases of a file: each failure must leave it usable for the next case."""
    from failures_kit import bench

    with bench() as one:
        yield one
