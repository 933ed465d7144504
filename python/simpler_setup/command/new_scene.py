"""`simpler new NAME`: a scene that works, copied from the template with the name filled in."""

from __future__ import annotations

import keyword
import sys
from pathlib import Path

_TEMPLATE = Path(__file__).with_name("template")
_FILES = {
    "scene.py.txt": "test_{name}.py",
    "orchestration.cpp.txt": "kernels/{name}_orch.cpp",
    "kernel.cpp.txt": "kernels/{name}.cpp",
}


def write(name: str, parent: Path) -> int:
    """Write the scene into a new folder `parent/name`; returns the exit code."""
    given, name = name, name.replace("-", "_")
    if not name.isidentifier() or keyword.iskeyword(name) or not name.isascii():
        print(
            f"ERROR: {given!r} cannot be the name of a scene: use letters, digits and _, not beginning with a digit",
            file=sys.stderr,
        )
        return 2
    folder = parent / name
    if folder.exists():
        print(f"ERROR: {folder} exists already; choose another name, or another --dir", file=sys.stderr)
        return 2
    title = "".join(word[:1].upper() + word[1:] for word in name.split("_"))
    try:
        for template, target in _FILES.items():
            path = folder / target.format(name=name)
            path.parent.mkdir(parents=True, exist_ok=True)
            text = (_TEMPLATE / template).read_text(encoding="utf-8")
            path.write_text(text.replace("@NAME@", name).replace("@TITLE@", title), encoding="utf-8")
            print(f"wrote {path}")
    except OSError as error:
        print(f"ERROR: {folder} cannot be written: {error}", file=sys.stderr)
        return 1
    print(f"run it: simpler run {folder} -p a2a3sim")
    return 0
