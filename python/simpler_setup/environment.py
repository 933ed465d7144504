"""Where things are: headers that user code is compiled against, the user's cache folder, the artifact folder.

Nothing here writes. An installed package carries its headers in `simpler_setup/_assets`; in a source checkout they
are those of the repository.
"""

from __future__ import annotations

import os
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_ASSETS = _PACKAGE / "_assets"

#: Folder that holds `include/`: the packaged assets, else the repository that contains `python/simpler_setup`.
PROJECT_ROOT: Path = _ASSETS if (_ASSETS / "include").is_dir() else _PACKAGE.parents[1]


def is_source_checkout() -> bool:
    """True when the headers come from a repository rather than from an installed package."""
    return PROJECT_ROOT != _ASSETS


def include_root() -> Path:
    """The folder of public headers: `orchestration`, `kernel` and `pto` lie in it."""
    return PROJECT_ROOT / "include"


def cache_dir() -> Path:
    """The user's cache folder; may not exist yet. `SIMPLER_CACHE_DIR`, `XDG_CACHE_HOME/simpler`, `~/.cache/simpler`."""
    explicit = os.environ.get("SIMPLER_CACHE_DIR")
    if explicit:
        return Path(explicit).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path("~/.cache").expanduser()).absolute() / "simpler"


def outputs_dir() -> Path:
    """Root of the per-case artifact folders; may not exist yet.

    `SIMPLER_OUTPUT_DIR`, else `outputs` in the repository of a source checkout, else `outputs` in the current folder.
    """
    explicit = os.environ.get("SIMPLER_OUTPUT_DIR")
    if explicit:
        return Path(explicit).expanduser().absolute()
    return (PROJECT_ROOT if is_source_checkout() else Path.cwd()) / "outputs"


def compiler_visible_path(path: object) -> Path:
    """`path` relative to PROJECT_ROOT when it lies inside, else absolute."""
    absolute = Path(os.path.abspath(os.fspath(path)))  # type: ignore[call-overload]
    try:
        return absolute.relative_to(PROJECT_ROOT)
    except ValueError:
        return absolute
