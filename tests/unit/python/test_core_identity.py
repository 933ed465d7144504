"""Callable identity: descriptions, hash ids, payloads, import targets, the registry of one worker."""

import hashlib
import struct

import pytest
from simpler import callable_identity as identity
from simpler.callable_identity import CallableHandle
from simpler.callable_registry import CallableRegistry
from simpler.task_interface import ArgDirection as D
from simpler.task_interface import ChipCallable

HASHID = "sha256:" + "0a" * 32


def chip(name="f"):
    return ChipCallable.build(signature=[D.IN, D.SCALAR, D.OUT], func_name=name, binary=b"x", children=[])


def prefixed(data):
    return struct.pack("<I", len(data)) + data


def test_chip_description_is_canonical():
    got = identity.build_chip_callable_descriptor("a5", "a5sim", "host_build_graph", b"blob", [1, 2])
    schema = struct.pack("<4I", 1, 2, 1, 2)
    parts = [b"a5", b"a5sim", b"host_build_graph", hashlib.sha256(b"blob").digest(), hashlib.sha256(schema).digest()]
    assert got == struct.pack("<2I", 1, 1) + b"".join(map(prefixed, parts))
    hashid = identity.compute_callable_hashid(got)
    assert identity.hashid_to_digest(hashid) == hashlib.sha256(got).digest()


def test_python_descriptions_differ_by_kind():
    imported = identity.build_python_import_descriptor("m", "q")
    assert imported == struct.pack("<2I", 1, 3) + prefixed(b"m") + prefixed(b"q")
    serialized = identity.build_python_serialized_descriptor(b"p")
    assert serialized == struct.pack("<4I", 1, 2, 1, 1) + prefixed(hashlib.sha256(b"p").digest())


@pytest.mark.parametrize("bad, kind", [("sha256:xyz", ValueError), ("md5:" + "0" * 64, ValueError), (5, TypeError),
                                       ("sha256:" + "0A" * 32, ValueError), (HASHID + "\n", ValueError)])  # fmt: skip
def test_malformed_hash_ids(bad, kind):
    with pytest.raises(kind, match="HASHID_FORMAT_INVALID" if kind is ValueError else "str"):
        CallableHandle(bad, "CHIP_CALLABLE", "LOCAL_CHIP")


def test_handles_check_their_words():
    assert len(CallableHandle(HASHID, "CHIP_CALLABLE", "LOCAL_CHIP").digest) == identity.CALLABLE_HASH_DIGEST_BYTES
    with pytest.raises(ValueError, match="kind"):
        CallableHandle(HASHID, "CHIP", "LOCAL_CHIP")
    with pytest.raises(ValueError, match="target_namespace"):
        CallableHandle(HASHID, "CHIP_CALLABLE", "CHIP")


def test_python_payload_round_trip_and_each_deviation():
    payload = identity.pack_python_callable_payload(b"pickled")
    assert identity.parse_python_callable_payload(payload) == b"pickled"
    head = [b"SPYC", 1, 1, 0, 7]
    deviations = [(0, b"XPYC", "magic"), (1, 2, "version"), (2, 2, "serializer"), (3, 1, "flags"), (4, 8, "size")]
    for position, value, word in deviations:
        damaged = [*head[:position], value, *head[position + 1 :]]
        with pytest.raises(ValueError, match=word):
            identity.parse_python_callable_payload(struct.pack("<4sBBHQ", *damaged) + b"pickled")
    with pytest.raises(ValueError, match="header"):
        identity.parse_python_callable_payload(b"SPYC")


def test_import_targets():
    assert identity.parse_python_import_target(" pkg.mod:Outer.inner ") == ("pkg.mod", "Outer.inner")
    for bad in ("pkg.mod", "a:b:c", ":f", "m:", ".rel:f", "m:f.<locals>.g", "m m:f", "m:1f", "", "m..n:f"):
        with pytest.raises(ValueError, match="import target"):
            identity.parse_python_import_target(bad)
    with pytest.raises(TypeError):
        identity.parse_python_import_target(5)


# ---- registry ----


class Device:
    """Records what the registry asks for; fails on demand."""

    def __init__(self):
        self.slots = {}
        self.failure = None
        self.reserved = set()

    def install(self, slot, callable_):
        if self.failure:
            raise self.failure
        assert slot not in self.slots
        self.slots[slot] = callable_

    def registry(self):
        return CallableRegistry(("a", "p", "r"), self.install, self.slots.pop, lambda slot: slot not in self.reserved)


def drop(registry, handle):
    registry.unregister(handle, lambda slot: None)


def test_equal_content_shares_a_slot_and_counts_its_handles():
    device = Device()
    registry = device.registry()
    one, two = registry.register(chip()), registry.register(chip())
    assert one.hashid == two.hashid and one._handle_id != two._handle_id and list(device.slots) == [0]
    drop(registry, one)
    assert registry.resolve(two).slot_id == 0
    with pytest.raises(KeyError, match="not live"):
        registry.resolve(one)
    drop(registry, two)
    assert device.slots == {}


def test_slots_are_used_again_and_sixty_four_is_the_limit():
    device = Device()
    device.reserved = {5}
    registry = device.registry()
    handles = [registry.register(chip(f"f{i}")) for i in range(63)]
    assert sorted(device.slots) == [i for i in range(64) if i != 5]
    with pytest.raises(RuntimeError, match="LOCAL_SLOT_EXHAUSTED.*MAX_REGISTERED_CALLABLE_IDS"):
        registry.register(chip("one too many"))
    registry.register(chip("f7"))  # known content needs no slot
    drop(registry, handles[20])
    assert registry.resolve(registry.register(chip("new"))).slot_id == registry.resolve(handles[19]).slot_id + 1


def test_a_failed_installation_leaves_nothing():
    device = Device()
    registry = device.registry()
    device.failure = RuntimeError("no")
    with pytest.raises(RuntimeError, match="no"):
        registry.register(chip())
    device.failure = None
    assert registry.entries() == []
    assert registry.resolve(registry.register(chip())).references == 1


def test_a_failed_removal_keeps_the_handle_live():
    registry = Device().registry()
    handle = registry.register(chip())

    def interrupted(slot):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        registry.unregister(handle, interrupted)
    assert registry.resolve(handle).references == 1


def test_only_own_live_unaltered_handles_are_accepted():
    registry, other = Device().registry(), Device().registry()
    handle = registry.register(chip())
    for thing in (chip(), lambda: None, 0, None, "sha256:"):
        with pytest.raises(TypeError, match="CallableHandle"):
            registry.resolve(thing)
    with pytest.raises(KeyError, match="does not belong"):
        registry.resolve(other.register(chip()))
    with pytest.raises(KeyError, match="not live"):
        registry.resolve(CallableHandle(handle.hashid, handle.kind, handle.target_namespace))
    handle.kind = "PYTHON_IMPORT"
    with pytest.raises(RuntimeError, match="CALLABLE_HANDLE_MUTATED"):
        registry.resolve(handle)
