"""Which tile library kernels are compiled against: ours, unless the user names another one."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import tempfile
from pathlib import Path

from .environment import PROJECT_ROOT, cache_dir
from .errors import unknown_name

_COMMIT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._/-]*")


def bundled_pto_isa_root() -> Path:
    """Root of the bundled library: `<root>/include` and `<root>/include/pto` exist."""
    return PROJECT_ROOT


#: How the vendor's library is fetched: protocol -> repository.
PROTOCOLS = {
    "https": "https://github.com/PTO-ISA/pto-isa.git",
    "ssh": "git@github.com:PTO-ISA/pto-isa.git",
}

_selected: Path | None = None


def select(root: Path | None) -> None:
    """Let this process use the library at `root`, before any other; None undoes it."""
    global _selected
    _selected = root


def fetch(commit: str, protocol: str = "https") -> Path:
    """The vendor's library at a commit, in the user's cache folder; fetched unless it is there.

    `SIMPLER_PTO_ISA_URL` names another repository. OSError says what git said and what to do instead.
    """
    if not _COMMIT.fullmatch(commit):
        raise ValueError(f"tile library commit {commit!r} is not a commit, tag or branch name")
    if protocol not in PROTOCOLS:
        raise ValueError(unknown_name("protocol", protocol, PROTOCOLS))
    url = os.environ.get("SIMPLER_PTO_ISA_URL") or PROTOCOLS[protocol]
    root = cache_dir() / "pto-isa" / hashlib.sha256(f"{url} {commit}".encode()).hexdigest()[:16]
    if (root / "include").is_dir():
        return root
    root.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".new-", dir=root.parent) as scratch:
        for words in (["init", "-q"], ["fetch", "-q", "--depth", "1", url, commit], ["checkout", "-q", "FETCH_HEAD"]):
            _git(scratch, words, url, commit)
        if not os.path.isdir(os.path.join(scratch, "include")):
            raise OSError(f"tile library {url} at {commit} has no include folder")
        try:
            os.rename(scratch, root)
            os.mkdir(scratch)  # for TemporaryDirectory, which removes it
        except OSError:
            if not (root / "include").is_dir():  # else another process was as fast
                raise
    return root


def _git(folder: str, words: list[str], url: str, commit: str) -> None:
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0"}
    advice = "use the bundled library (leave --pto-isa-commit out), or point PTO_ISA_ROOT at a checkout"
    try:
        done = subprocess.run(
            ["git", "-C", folder, *words],
            capture_output=True, text=True, check=False, env=environment, stdin=subprocess.DEVNULL, timeout=600,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise OSError(f"tile library: git {words[0]} failed: {error}; {advice}") from error
    if done.returncode != 0:
        said = done.stderr.strip() or f"exit code {done.returncode}"
        raise OSError(f"tile library {url} at {commit} cannot be fetched: {said}; {advice}")


def explicit_pto_isa_root() -> Path | None:
    """The library that `--pto-isa-commit` or `PTO_ISA_ROOT` chose, or None.

    FileNotFoundError when the latter has no `include` folder.
    """
    if _selected is not None:
        return _selected
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
    """Root of the tile library as text: the one at `commit` of the vendor's repository when that is given, else what
    `--pto-isa-commit` or `PTO_ISA_ROOT` chose, else the bundled one. Only `commit` needs a network, and only once.

    `clone_protocol` says how to fetch; `update_if_exists` has nothing to update, since a commit never changes.
    """
    del update_if_exists
    root = fetch(commit, clone_protocol or "https") if commit else explicit_pto_isa_root() or bundled_pto_isa_root()
    if verbose:
        print(f"tile library: {root}")
    return str(root)
