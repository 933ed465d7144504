"""Just enough of ELF64 and Mach-O64: the code of a kernel object, and the names that a shared object exports."""

from __future__ import annotations

import os
import struct
from typing import NamedTuple

_SHT_SYMTAB, _SHT_PROGBITS, _SHT_DYNSYM = 2, 1, 11
_MACHO64 = 0xFEEDFACF
_LC_SEGMENT_64 = 0x19


class _Section(NamedTuple):
    name: str
    kind: int
    offset: int
    size: int
    link: int
    entry_size: int
    address: int


def _read(source: str | bytes | bytearray | memoryview | os.PathLike[str]) -> bytes:
    if isinstance(source, (bytes, bytearray, memoryview)):
        return bytes(source)
    with open(source, "rb") as file:
        return file.read()


def _text_at(table: bytes, at: int) -> str:
    return table[at : table.find(b"\0", at)].decode("utf-8", "replace")


def _sections(data: bytes) -> list[_Section]:
    if len(data) < 64:
        raise ValueError(f"not an ELF file: {len(data)} bytes are too small for its 64-byte header")
    if data[:4] != b"\x7fELF":
        raise ValueError(f"not an ELF file: magic is {data[:4]!r}")
    if data[4] != 2 or data[5] != 1:
        raise ValueError("not a little-endian ELF64 file")
    table, entry_size, count, names_index = (
        struct.unpack_from("<Q", data, 40)[0],
        *struct.unpack_from("<HHH", data, 58),
    )
    if entry_size < 64 or table + entry_size * count > len(data):
        raise ValueError(f"ELF section header table (offset {table}, {count} entries) is out of bounds")
    if names_index >= count:
        raise ValueError(f"ELF section name table index {names_index} is out of bounds ({count} sections)")
    raw = [struct.unpack_from("<IIQQQQIIQQ", data, table + i * entry_size) for i in range(count)]
    names_offset, names_size = raw[names_index][4], raw[names_index][5]
    if names_offset + names_size > len(data):
        raise ValueError("ELF section name table (strtab) is out of bounds")
    names = data[names_offset : names_offset + names_size]
    return [_Section(_text_at(names, r[0]), r[1], r[4], r[5], r[6], r[9], r[3]) for r in raw]


def _body(data: bytes, section: _Section) -> bytes:
    if section.offset + section.size > len(data):
        raise ValueError(f"section {section.name} (offset {section.offset}, {section.size} bytes) is out of bounds")
    return data[section.offset : section.offset + section.size]


def exported_symbols(source: str | bytes) -> list[str]:
    """Names that a shared object defines for others (its dynamic symbols), sorted."""
    data = _read(source)
    sections = _sections(data)
    found = set()
    for section in sections:
        if section.kind != _SHT_DYNSYM:
            continue
        symbols, names = _body(data, section), _body(data, sections[section.link])
        for at in range(0, len(symbols) - 23, 24):
            name, info, _, index = struct.unpack_from("<IBBH", symbols, at)
            if index != 0 and info >> 4 in (1, 2, 10):  # defined and global, weak or unique
                found.add(_text_at(names, name))
    return sorted(found)


def _elf_text(data: bytes) -> bytes:
    sections = _sections(data)
    by_name: dict[str, int] = {section.name: index for index, section in enumerate(sections)}
    if ".text" not in by_name:
        raise ValueError("the object has no .text section")
    extra = [s for s in sections if s.name.startswith(".text.") and s.kind == _SHT_PROGBITS and s.size]
    if extra:
        raise ValueError(
            "the kernel has code outside .text, which would be lost: "
            + ", ".join(f"{s.name} ({s.size} bytes)" for s in extra)
            + ". Make those functions inline or static, or link the object first"
        )
    unresolved = [s for s in sections if s.name.startswith(".rela.text") and s.size]
    if unresolved:
        raise ValueError(
            "the kernel has relocations that nobody would apply: "
            + ", ".join(f"{s.name} ({s.size // (s.entry_size or 24)} entries)" for s in unresolved)
            + ". Link the object first"
        )
    index = by_name[".text"]
    text = sections[index]
    for section in sections:
        if section.kind != _SHT_SYMTAB:
            continue
        symbols, names = _body(data, section), _body(data, sections[section.link])
        for at in range(0, len(symbols) - 23, 24):
            name, _, _, where, value = struct.unpack_from("<IBBHQ", symbols, at)
            if where == index and _text_at(names, name) == "kernel_entry" and value not in (0, text.address):
                raise ValueError(
                    f"kernel_entry is at {value:#x}, not at the start of .text: the device would start elsewhere"
                )
    return _body(data, text)


def _macho_text(data: bytes) -> bytes:
    if len(data) < 32:
        raise ValueError(f"not a Mach-O file: {len(data)} bytes are too small for its 32-byte header")
    commands, at = struct.unpack_from("<I", data, 16)[0], 32
    for _ in range(commands):
        if at + 8 > len(data):
            raise ValueError("Mach-O load commands are out of bounds")
        kind, size = struct.unpack_from("<II", data, at)
        if kind == _LC_SEGMENT_64:
            for i in range(struct.unpack_from("<I", data, at + 64)[0]):
                entry = at + 72 + 80 * i
                if entry + 80 > len(data):
                    raise ValueError("Mach-O section table is out of bounds")
                if data[entry : entry + 16].rstrip(b"\0") == b"__text":
                    length, offset = struct.unpack_from("<QI", data, entry + 40)
                    if offset + length > len(data):
                        raise ValueError("Mach-O __text section is out of bounds")
                    return data[offset : offset + length]
        at += max(size, 8)
    raise ValueError("the object has no __text (.text) section")


def extract_text_section(source: str | bytes | os.PathLike[str]) -> bytes:
    """The code of a kernel object file, as the device loads it.

    `source` is a path or the file's bytes, ELF64 or Mach-O64. ValueError when the code alone would not run: more code
    sections, unapplied relocations, `kernel_entry` not first.
    """
    data = _read(source)
    if data[:4] == struct.pack("<I", _MACHO64):
        return _macho_text(data)
    return _elf_text(data)
