"""Writes valid structs into a folder, as first inputs of abi_checks_fuzz. Usage: abi_checks_fuzz_seeds.py FOLDER"""

import struct
import sys
from pathlib import Path

CHIP_HEADER, CORE_HEADER = 9376, 192


def core(code: bytes) -> bytes:
    return struct.pack("<32iiIQ", *([1, 2] + [0] * 30), 2, len(code), 0).ljust(CORE_HEADER, b"\0") + code


def chip(children: list) -> bytes:
    storage, ids, offsets = b"orchestration", [], []
    for number, child in enumerate(children):
        storage = storage.ljust((len(storage) + 63) // 64 * 64, b"\0")
        ids.append(number)
        offsets.append(len(storage))
        storage += child
    fill = [0] * (1024 - len(children))
    header = struct.pack(
        "<256iiI64sI1024i1024Ii64sI",
        *([1, 2, 3] + [0] * 253),
        3,
        13,
        b"entry",
        5,
        *ids,
        *fill,
        *offsets,
        *fill,
        len(children),
        b"config",
        6,
    )
    return header.ljust(CHIP_HEADER, b"\0") + storage


def descriptor(body: bytes, space=0, access=2, backend=1) -> bytes:
    return struct.pack(
        "<H3B3x8sQI12xQIH2x", 0x5342, space, access, backend, b"12345678", 7, 1, 4096, 0, len(body)
    ) + body.ljust(32, b"\0")


def seeds() -> list:
    name = descriptor(b"name-of-memory")
    address = descriptor(struct.pack("<Q", 0x10000), space=1, backend=4)
    view = struct.pack("<QI5I5IB3x", 16, 2, 8, 4, 0, 0, 0, 4, 1, 0, 0, 0, 0)
    return [
        b"\0" + chip([core(b"code" * 5), core(b"")]),
        b"\0" + chip([]),
        b"\1" + core(b"code" * 30),
        b"\2"
        + struct.pack("<6i12Q", 0, 4, 1, 2, 1, 1, *([8] * 4 + [4096] * 4 + [64] * 4))
        + b"/tmp/out".ljust(1024, b"\0"),
        b"\3" + struct.pack("<12Q", *([4] * 4 + [1024] * 4 + [4] * 4)),
        b"\4" + name,
        b"\4" + address,
        b"\5" + name + view,
        b"\5" + address + view,
    ]


if __name__ == "__main__":
    for number, seed in enumerate(seeds()):
        Path(sys.argv[1], f"seed-{number}").write_bytes(seed)
