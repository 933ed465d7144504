"""CompileCache: compiled shared objects by content, in the user's cache folder.

What      A request (compiler, flags, include folders, source) leads to a manifest; a manifest lists, newest first, the
          header contents that were met and the artifact each led to. So a changed header is noticed, a header changed
          back is found again, and a hit starts no compiler.
Layout    <root>/manifests/<request>.json   {"variants": [{"deps": [[path, sha256]...], "absent": [path...],
                                             "artifact": sha256}...]}
          <root>/objects/<sha256>           the bytes, named by themselves and checked when read
          <root>/locks/<slot>.lock          one of 4096 lock files, by the first digits of the request
Threads   Any number of threads and processes. A miss compiles under the request's file lock and looks again first,
          so one of them compiles and the others read. Files appear by rename: a reader never sees half of one.
Absent    "absent" holds the paths where a header of that name would be found earlier; if one appears, it is a miss.
Limits    2 GiB and 14 days without use, least recently used first; looked at most once an hour, after a store.
Errors    A folder that cannot be used costs the caching, never the compile: one warning, then everything compiles.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, NamedTuple

try:
    import fcntl
except ImportError:  # not a POSIX system: threads of this process are still kept apart
    fcntl = None  # type: ignore[assignment]

from .environment import cache_dir

_SCHEMA = "1"
_VARIANTS = 8  # header states remembered per request
_USED_AGAIN_S = 3600.0  # a hit renews the time stamp at most this often
MAX_BYTES = 2 << 30
MAX_AGE_S = 14 * 86400.0
PRUNE_EVERY_S = 3600.0

#: Environment that changes what a compiler reads or writes.
_ENVIRONMENT = ("CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH", "GCC_EXEC_PREFIX", "SOURCE_DATE_EPOCH")


@dataclass(frozen=True)
class Request:
    """One compile, without its output name. `command` is complete except for source, output and dependency file."""

    source: Path
    command: tuple[str, ...]
    include_dirs: tuple[str, ...]
    compiler: str


@dataclass
class Product:
    """What a compile gave: the bytes, and every file it read except the source and system headers."""

    data: bytes
    dependencies: list[str] = field(default_factory=list)


@dataclass
class Counters:
    """Hits and compiles of this process, for tests and reports."""

    hits: int = 0
    compiles: int = 0


class Usage(NamedTuple):
    """What the cache holds; `oldest` is when its least recently used file was used, in seconds since 1970."""

    objects: int
    size_bytes: int
    oldest: float | None


_digests: dict[str, tuple[tuple[int, int, int], str]] = {}


def _file_digest(path: str) -> str | None:
    """sha256 of a file, None when it cannot be read. Remembered for an unchanged time, size and inode."""
    try:
        stat = os.stat(path)
        stamp = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
        known = _digests.get(path)
        if known is not None and known[0] == stamp:
            return known[1]
        with open(path, "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()
    except OSError:
        return None
    if time.time_ns() - stat.st_mtime_ns > 1_000_000_000:  # a file written just now may change within one time stamp
        _digests[path] = (stamp, digest)
    return digest


def _earlier_places(request: Request, dependencies: list[str]) -> list[str]:
    """Paths where the compiler looked for these headers in vain, because it found them in a later folder."""
    folders = [str(request.source.parent), *request.include_dirs]
    places = set()
    for path in dependencies:
        for index, folder in enumerate(folders):
            if path.startswith(folder + os.sep):
                name = path[len(folder) + 1 :]
                places.update(os.path.join(earlier, name) for earlier in folders[:index])
    return sorted(place for place in places if place not in dependencies and not os.path.exists(place))


class CompileCache:
    """See the top of this file. `root` defaults to `<user cache folder>/compile`, read at each use."""

    def __init__(self, root: Path | None = None):
        self._explicit_root = root
        self._warned = threading.Event()
        self.counters = Counters()

    @property
    def root(self) -> Path:
        return self._explicit_root or cache_dir() / "compile"

    def get_or_build(self, request: Request, build: Callable[[], Product]) -> bytes:
        """The artifact of a request: from the cache, else from `build`, which runs at most once per missing entry."""
        key = self._key(request)
        data = self._lookup(key)
        if data is None:
            with self._locked(key) as usable:
                data = self._lookup(key) if usable else None
                if data is None:
                    self.counters.compiles += 1
                    product = build()
                    if usable:
                        self._store(key, request, product)
                    return product.data
        self.counters.hits += 1
        return data

    def prune(self, *, now: float | None = None, max_bytes: int = MAX_BYTES, max_age_s: float = MAX_AGE_S) -> int:
        """Drop what was not used for long, then the least recently used until the size fits. Returns files removed."""
        now = time.time() if now is None else now
        files = self._files()
        total, removed = sum(size for _, size, _ in files), 0
        for used, size, path in sorted(files):
            if now - used <= max_age_s and total <= max_bytes:
                break
            with contextlib.suppress(OSError):
                os.unlink(path)
                removed, total = removed + 1, total - size
        return removed

    def usage(self) -> Usage:
        """How much there is now."""
        files = self._files()
        objects = sum(os.path.basename(os.path.dirname(path)) == "objects" for _, _, path in files)
        return Usage(objects, sum(size for _, size, _ in files), min((used for used, _, _ in files), default=None))

    def _files(self) -> list[tuple[float, int, str]]:
        """(time of last use, bytes, path) of each stored file."""
        files = []
        for folder in ("objects", "manifests"):
            with contextlib.suppress(OSError), os.scandir(self.root / folder) as entries:
                for entry in entries:
                    with contextlib.suppress(OSError):
                        stat = entry.stat()
                        files.append((stat.st_mtime, stat.st_size, entry.path))
        return files

    # -- inside ---------------------------------------------------------------------------------------------------

    def _key(self, request: Request) -> str:
        parts = [
            _SCHEMA,
            request.compiler,
            *request.command,
            "-I",
            *request.include_dirs,
            str(request.source),
            _file_digest(str(request.source)) or "",
            *(f"{name}={os.environ[name]}" for name in _ENVIRONMENT if name in os.environ),
        ]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    def _manifest(self, key: str) -> Path:
        return self.root / "manifests" / f"{key}.json"

    def _object(self, digest: str) -> Path:
        return self.root / "objects" / digest

    def _variants(self, key: str) -> list[dict[str, Any]]:
        try:
            variants = json.loads(self._manifest(key).read_bytes())["variants"]
            return [variant for variant in variants if isinstance(variant, dict)]
        except (OSError, ValueError, KeyError, TypeError):
            return []

    def _lookup(self, key: str) -> bytes | None:
        for variant in self._variants(key):
            try:
                current = all(_file_digest(path) == digest for path, digest in variant["deps"]) and not any(
                    os.path.exists(path) for path in variant["absent"]
                )
                if not current:
                    continue
                data = self._object(variant["artifact"]).read_bytes()
            except (OSError, KeyError, TypeError, ValueError):
                continue
            if hashlib.sha256(data).hexdigest() != variant["artifact"]:
                continue  # damaged on disk: compile again, which replaces it
            self._used(key, variant["artifact"])
            return data
        return None

    def _used(self, key: str, artifact: str) -> None:
        with contextlib.suppress(OSError):
            path = self._object(artifact)
            if time.time() - path.stat().st_mtime > _USED_AGAIN_S:
                os.utime(path)
                os.utime(self._manifest(key))

    @contextlib.contextmanager
    def _locked(self, key: str) -> Iterator[bool]:
        """Hold the request's lock; yields False, without a lock, when the folder cannot be used."""
        try:
            for folder in ("manifests", "objects", "locks"):
                (self.root / folder).mkdir(parents=True, exist_ok=True)
            lock = open(self.root / "locks" / f"{key[:3]}.lock", "ab")
        except OSError as error:
            self._warn(error)
            yield False
            return
        with lock:
            if fcntl is not None:
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield True

    def _store(self, key: str, request: Request, product: Product) -> None:
        digest = hashlib.sha256(product.data).hexdigest()
        deps = [(path, _file_digest(path)) for path in product.dependencies]
        if any(known is None for _, known in deps):
            return  # a header vanished while we compiled: nothing reliable to remember
        variant = {"deps": deps, "absent": _earlier_places(request, product.dependencies), "artifact": digest}
        others = [v for v in self._variants(key) if v.get("deps") != [list(dep) for dep in deps]]
        try:
            self._write(self._object(digest), product.data)
            text = json.dumps({"variants": [variant, *others][:_VARIANTS]})
            self._write(self._manifest(key), text.encode())
            self._prune_sometimes()
        except OSError as error:
            self._warn(error)

    def _write(self, path: Path, data: bytes) -> None:
        handle, scratch = tempfile.mkstemp(dir=path.parent, prefix=".new-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            os.replace(scratch, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(scratch)
            raise

    def _prune_sometimes(self) -> None:
        stamp = self.root / "pruned"
        try:
            due = time.time() - stamp.stat().st_mtime > PRUNE_EVERY_S
        except FileNotFoundError:
            due = True
        if due:
            stamp.touch()
            self.prune()

    def _warn(self, error: OSError) -> None:
        if not self._warned.is_set():
            self._warned.set()
            logging.getLogger("simpler").warning(
                "compile cache %s cannot be used (%s); everything is compiled anew. "
                "Set SIMPLER_CACHE_DIR to a writable folder",
                self.root,
                error,
            )


#: The cache of this process.
shared_cache = CompileCache()
