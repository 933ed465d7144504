"""Which tile library kernels are compiled against: ours, unless the user names another one."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from .environment import PROJECT_ROOT


def bundled_pto_isa_root() -> Path:
    """Root of the bundled library: `<root>/include` and `<root>/include/pto` exist."""
    return PROJECT_ROOT


def explicit_pto_isa_root() -> Path | None:
    """The library that `PTO_ISA_ROOT` names, or None. FileNotFoundError when it has no `include` folder."""
    value = os.environ.get("PTO_ISA_ROOT")
    if not value:
        return None
    root = Path(value).expanduser().absolute()
    if not (root / "include").is_dir():
        raise FileNotFoundError(
            f"PTO_ISA_ROOT={value!r} has no include folder; point it at a tile library checkout, "
            "or unset it to use the bundled library"
        )
    return root


def ensure_pto_isa_root(
    commit: str | None = None,
    clone_protocol: str | None = None,
    update_if_exists: bool = False,
    verbose: bool = False,
) -> str:
    """Root of the tile library as text: `PTO_ISA_ROOT` when set, else the bundled one. Never uses the network.

    `commit`, `clone_protocol` and `update_if_exists` chose a checkout when the library was fetched; they are accepted
    and have no effect.
    """
    if commit or clone_protocol or update_if_exists:
        logging.getLogger("simpler").warning(
            "ensure_pto_isa_root: commit, clone_protocol and update_if_exists are ignored; "
            "the tile library is bundled (set PTO_ISA_ROOT to use another one)"
        )
    root = explicit_pto_isa_root() or bundled_pto_isa_root()
    if verbose:
        print(f"tile library: {root}")
    return str(root)
