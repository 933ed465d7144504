"""Skips what this version cannot pass yet: the tests that `<suite>_left_out.txt` names, each with the reason above it.

The suites are kept as they came; that is why the list is beside them. A name that no test has is an error.
"""

from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent


def left_out(suite):
    """{(file, test function): reason} of a suite."""
    path = HERE / f"{suite}_left_out.txt"
    reasons, reason = {}, ""
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        if line.startswith("#"):
            reason = line.lstrip("# ")
        elif line:
            reasons[tuple(line.split("::"))] = reason
    return reasons


def pytest_collection_modifyitems(items):
    listed, used, files = {}, set(), set()
    for item in items:
        if HERE not in item.path.parents:
            continue
        suite = item.path.relative_to(HERE).parts[0]
        key = (item.path.name, getattr(item, "originalname", item.name))
        reason = listed.setdefault(suite, left_out(suite)).get(key)
        files.add((suite, item.path.name))
        if reason:
            used.add((suite, *key))
            item.add_marker(pytest.mark.skip(reason=reason))
    unknown = [
        "::".join(key)
        for suite, names in listed.items()
        for key in names
        if (suite, key[0]) in files and (suite, *key) not in used
    ]
    if unknown and not any("::" in str(argument) for argument in items[0].config.args):
        raise pytest.UsageError(f"left out, but not there: {', '.join(unknown)}")
