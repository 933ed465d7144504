"""Reading object files: made by hand, so that each rule is met alone."""

import struct

import pytest
from simpler_setup.elf_parser import exported_symbols, extract_text_section

PROGBITS, SYMTAB, STRTAB, RELA, DYNSYM = 1, 2, 3, 4, 11


def elf(sections):
    """An ELF64 file of (name, type, body, link by name) sections."""
    rows = [("", 0, b"", ""), *sections, (".shstrtab", STRTAB, b"", "")]
    names, at = b"", {}
    for name, *_ in rows:
        at[name] = len(names)
        names += name.encode() + b"\0"
    rows[-1] = (".shstrtab", STRTAB, names, "")
    index = {row[0]: i for i, row in enumerate(rows)}
    body, table = b"\0" * 64, b""
    for name, kind, data, link in rows:
        table += struct.pack("<IIQQQQIIQQ", at[name], kind, 0, 0, len(body), len(data), index.get(link, 0), 0, 1, 24)
        body += data
    head = (
        b"\x7fELF\x02\x01\x01"
        + b"\0" * 9
        + struct.pack("<HHIQQQIHHHHHH", 1, 62, 1, 0, 0, len(body), 0, 64, 0, 0, 64, len(rows), len(rows) - 1)
    )
    return head + body[64:] + table


def symbol(name_at, section, value, info=0x12):
    return struct.pack("<IBBHQQ", name_at, info, 0, section, value, 0)


TEXT = (".text", PROGBITS, b"code bytes", "")
NAMES = (".strtab", STRTAB, b"\0kernel_entry\0", "")


def test_the_code_is_returned_as_it_is(tmp_path):
    data = elf([TEXT])
    path = tmp_path / "k.o"
    path.write_bytes(data)
    assert extract_text_section(data) == extract_text_section(path) == extract_text_section(str(path)) == b"code bytes"


@pytest.mark.parametrize(
    "data, words",
    [
        (b"tiny", "too small"),
        (b"NOPE" + b"\0" * 80, "magic"),
        (b"\x7fELF\x01\x01" + b"\0" * 80, "little-endian ELF64"),
        (elf([TEXT])[:-64], "out of bounds"),
        (elf([(".data", PROGBITS, b"x", "")]), "no .text"),
        (elf([TEXT, (".text.hot", PROGBITS, b"more", "")]), r"\.text\.hot \(4 bytes\)"),
        (elf([TEXT, (".rela.text", RELA, b"\0" * 48, "")]), r"\.rela\.text \(2 entries\)"),
        (elf([TEXT, NAMES, (".symtab", SYMTAB, symbol(1, 1, 16), ".strtab")]), "not at the start of .text"),
    ],
)
def test_what_would_not_run_is_refused(data, words):
    with pytest.raises(ValueError, match=words):
        extract_text_section(data)


def test_an_entry_at_the_start_and_an_empty_extra_section_are_fine():
    entry = (".symtab", SYMTAB, symbol(1, 1, 0), ".strtab")
    assert extract_text_section(elf([TEXT, (".text.cold", PROGBITS, b"", ""), NAMES, entry])) == b"code bytes"


def test_exports_are_the_defined_global_dynamic_symbols():
    names = (".dynstr", STRTAB, b"\0needed\0global\0weak\0local\0", "")
    rows = symbol(1, 0, 0) + symbol(8, 1, 0) + symbol(15, 1, 0, 0x22) + symbol(20, 1, 0, 0x02)
    assert exported_symbols(elf([TEXT, names, (".dynsym", DYNSYM, rows, ".dynstr")])) == ["global", "weak"]


def macho(section, body, size=None):
    command = struct.pack("<II16sQQQQIIII", 0x19, 72 + 80, b"__TEXT", 0, 0, 0, 0, 0, 0, 1, 0)
    row = struct.pack("<16s16sQQIIIIIIII", section, b"__TEXT", 0, len(body) if size is None else size, 184, *[0] * 7)
    return struct.pack("<IIIIIIII", 0xFEEDFACF, 0, 0, 1, 1, 152, 0, 0) + command + row + body


def test_mach_o_objects():
    assert extract_text_section(macho(b"__text", b"apple code")) == b"apple code"
    with pytest.raises(ValueError, match="no __text"):
        extract_text_section(macho(b"__data", b"x"))
    with pytest.raises(ValueError, match="out of bounds"):
        extract_text_section(macho(b"__text", b"x", 1000))
