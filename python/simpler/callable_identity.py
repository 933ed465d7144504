"""Names of callables by content: a SHA-256 over a canonical description, and handles that carry it.

All integers of a description are little-endian uint32; strings and digests are preceded by their length.
"""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Iterable, Sequence
from typing import Any

from .errors import ArgumentError, ArgumentTypeError

__all__ = [
    "CALLABLE_HASH_DIGEST_BYTES",
    "CallableHandle",
    "build_chip_callable_descriptor",
    "build_python_import_descriptor",
    "build_python_serialized_descriptor",
    "compute_callable_hashid",
    "digest_to_hashid",
    "hashid_to_digest",
    "pack_python_callable_payload",
    "parse_python_callable_payload",
    "parse_python_import_target",
    "validate_hashid",
]

CALLABLE_HASH_DIGEST_BYTES = 32

CHIP_CALLABLE = "CHIP_CALLABLE"
PYTHON_SERIALIZED = "PYTHON_SERIALIZED"
PYTHON_IMPORT = "PYTHON_IMPORT"
KINDS = (CHIP_CALLABLE, PYTHON_SERIALIZED, PYTHON_IMPORT)

LOCAL_CHIP = "LOCAL_CHIP"
LOCAL_PYTHON = "LOCAL_PYTHON"
REMOTE_TASK_DISPATCHER = "REMOTE_TASK_DISPATCHER"
NAMESPACES = (LOCAL_CHIP, LOCAL_PYTHON, REMOTE_TASK_DISPATCHER)

_SCHEMA_VERSION = 1
_KIND_NUMBERS = {kind: number for number, kind in enumerate(KINDS, start=1)}
_HASHID = re.compile(r"sha256:[0-9a-f]{64}")

_PAYLOAD_HEADER = struct.Struct("<4sBBHQ")  # magic, version, serializer, flags, bytes that follow
_PAYLOAD_MAGIC = b"SPYC"
_PAYLOAD_VERSION = 1
_SERIALIZER_CLOUDPICKLE = 1


# ---- hash ids ----


def validate_hashid(hashid: object) -> str:
    """The hash id itself; TypeError if it is no str, ValueError beginning HASHID_FORMAT_INVALID if malformed."""
    if not isinstance(hashid, str):
        raise ArgumentTypeError(f"a hash id is a str, not {type(hashid).__name__}")
    if not _HASHID.fullmatch(hashid):
        raise ArgumentError(f"HASHID_FORMAT_INVALID: {hashid[:80]!r}; expected 'sha256:' and 64 lowercase hex digits")
    return hashid


def hashid_to_digest(hashid: str) -> bytes:
    return bytes.fromhex(validate_hashid(hashid)[len("sha256:") :])


def digest_to_hashid(digest: bytes) -> str:
    return f"sha256:{digest.hex()}"


def compute_callable_hashid(descriptor: bytes) -> str:
    return digest_to_hashid(hashlib.sha256(descriptor).digest())


# ---- descriptions ----


def _u32(value: int) -> bytes:
    return struct.pack("<I", value)


def _prefixed(data: bytes | str) -> bytes:
    raw = data.encode() if isinstance(data, str) else data
    return _u32(len(raw)) + raw


def _head(kind: str) -> bytes:
    return _u32(_SCHEMA_VERSION) + _u32(_KIND_NUMBERS[kind])


def build_chip_callable_descriptor(
    arch: str, platform: str, runtime: str, blob: bytes, signature: Iterable[int]
) -> bytes:
    """signature: the numbers of the ArgDirection members."""
    directions = list(signature)
    schema = _u32(1) + _u32(len(directions)) + b"".join(_u32(d) for d in directions)
    return (
        _head(CHIP_CALLABLE)
        + _prefixed(arch)
        + _prefixed(platform)
        + _prefixed(runtime)
        + _prefixed(hashlib.sha256(blob).digest())
        + _prefixed(hashlib.sha256(schema).digest())
    )


def build_python_serialized_descriptor(pickled: bytes) -> bytes:
    return (
        _head(PYTHON_SERIALIZED)
        + _u32(_PAYLOAD_VERSION)
        + _u32(_SERIALIZER_CLOUDPICKLE)
        + _prefixed(hashlib.sha256(pickled).digest())
    )


def build_python_import_descriptor(module: str, qualname: str) -> bytes:
    return _head(PYTHON_IMPORT) + _prefixed(module) + _prefixed(qualname)


# ---- Python payloads ----


def pack_python_callable_payload(pickled: bytes) -> bytes:
    header = _PAYLOAD_HEADER.pack(_PAYLOAD_MAGIC, _PAYLOAD_VERSION, _SERIALIZER_CLOUDPICKLE, 0, len(pickled))
    return header + pickled


def parse_python_callable_payload(payload: bytes) -> bytes:
    """The pickled bytes inside; ValueError for every deviation from the format."""
    if len(payload) < _PAYLOAD_HEADER.size:
        raise ArgumentError(f"Python payload: {len(payload)} bytes, but its header has {_PAYLOAD_HEADER.size}")
    magic, version, serializer, flags, size = _PAYLOAD_HEADER.unpack_from(payload)
    for what, value, expected in (
        ("magic", magic, _PAYLOAD_MAGIC),
        ("version", version, _PAYLOAD_VERSION),
        ("serializer", serializer, _SERIALIZER_CLOUDPICKLE),
        ("flags", flags, 0),
        ("size", size, len(payload) - _PAYLOAD_HEADER.size),
    ):
        if value != expected:
            raise ArgumentError(f"Python payload: {what} is {value!r}, expected {expected!r}")
    return payload[_PAYLOAD_HEADER.size :]


def parse_python_import_target(target: str) -> tuple[str, str]:
    """("pkg.mod", "qual.name") from "pkg.mod:qual.name"; white space around it is dropped."""
    if not isinstance(target, str):
        raise ArgumentTypeError(f"an import target is a str, not {type(target).__name__}")
    module, colon, qualname = target.strip().partition(":")
    parts_ok = all(
        part and all(piece.isidentifier() for piece in part.split(".")) for part in (module.strip(), qualname.strip())
    )
    if not colon or ":" in qualname or not parts_ok:
        raise ArgumentError(
            f"import target {target!r}: expected 'package.module:qualified.name' of a module-level object"
        )
    return module.strip(), qualname.strip()


# ---- handles ----


class CallableHandle:
    """What register() returns. Only a handle from register() is live; an equal one made by hand is not."""

    __slots__ = ("_digest", "_handle_id", "_owner_id", "hashid", "kind", "target_namespace", "__weakref__")

    def __init__(self, hashid: str, kind: str, target_namespace: str) -> None:
        self._digest = hashid_to_digest(hashid)
        self.hashid = hashid
        self.kind = _member("kind", kind, KINDS)
        self.target_namespace = _member("target_namespace", target_namespace, NAMESPACES)
        self._owner_id: Any = None
        self._handle_id: int | None = None

    @property
    def digest(self) -> bytes:
        return self._digest

    def __repr__(self) -> str:
        return f"CallableHandle({self.hashid[:19]}..., {self.kind}, {self.target_namespace})"


def _member(what: str, value: str, allowed: Sequence[str]) -> str:
    if value not in allowed:
        raise ArgumentError(f"{what} is {value!r}; allowed: {', '.join(allowed)}")
    return value
