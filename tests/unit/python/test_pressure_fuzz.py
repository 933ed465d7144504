"""Random input to whatever reads numbers, texts or bytes of unknown origin: a typed error or a result, never a crash.

HYPOTHESIS_EXAMPLES raises the number of examples per test (default 150); a failing example is printed with its seed.
"""

import ctypes
import os
import pickle
import runpy
import struct
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from simpler.errors import SimplerError
from simpler.task_interface import ArgDirection as D
from simpler.task_interface import (
    CallConfig,
    ChipCallable,
    ChipTensor,
    CoreCallable,
    RuntimeEnv,
    TaskArgs,
    read_args_from_blob,
    scalar_to_uint64,
)
from simpler_setup.parallel_scheduler import device_range_to_list, format_device_range
from simpler_setup.scene.selection import SelectionError, parse_selectors

EXAMPLES = int(os.environ.get("HYPOTHESIS_EXAMPLES", "150"))
some = settings(max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck))

ANY_NUMBER = st.one_of(
    st.integers(-(2**70), 2**70),
    st.sampled_from([0, 1, 3, 4, 5, 1023, 1024, 2**30, 2**31 - 1, 2**31, 2**32, 2**63, 2**64 - 1, 2**64]),
)
ANY_VALUE = st.one_of(
    ANY_NUMBER,
    st.booleans(),
    st.none(),
    st.floats(),
    st.text(max_size=5),
    st.binary(max_size=5),
    st.lists(st.one_of(ANY_NUMBER, st.none(), st.booleans(), st.text(max_size=2)), max_size=6),
    st.tuples(ANY_NUMBER, ANY_NUMBER, ANY_NUMBER, ANY_NUMBER),
)
REFUSALS = (ValueError, TypeError)  # besides these, nothing may be raised for a bad value


# ---- run options ----

RINGS = ["ring_task_window", "ring_heap", "ring_dep_pool"]


@some
@given(st.sampled_from(RINGS), ANY_VALUE)
def test_a_ring_size_is_taken_whole_or_refused_whole(name, value):
    env = RuntimeEnv()
    setattr(env, name, [11, 22, 33, 44])
    try:
        setattr(env, name, value)
    except REFUSALS as error:
        assert name in str(error)
        assert getattr(env, name) == [11, 22, 33, 44]
    else:
        expected = [value] * 4 if isinstance(value, int) else list(value)
        assert getattr(env, name) == expected and all(0 <= entry < 2**64 for entry in expected)


def allowed(name, value):
    if value == 0:
        return True
    if name == "ring_heap":
        return value >= 1024
    return 4 <= value < 2**31 and (name == "ring_dep_pool" or value & (value - 1) == 0)


@some
@given(
    st.sampled_from(RINGS),
    st.lists(
        st.one_of(st.integers(0, 2**64 - 1), st.integers(0, 40).map(lambda n: 2**n), st.integers(0, 2000)),
        min_size=4,
        max_size=4,
    ),
)
def test_validate_accepts_exactly_the_allowed_ring_sizes(name, entries):
    config = CallConfig()
    setattr(config.runtime_env, name, entries)
    if all(allowed(name, entry) for entry in entries):
        config.validate()
    else:
        with pytest.raises(ValueError, match=name) as caught:
            config.validate()
        assert str(next(entry for entry in entries if not allowed(name, entry))) in str(caught.value)


FIELDS = [
    "aicpu_thread_num",
    "enable_chip_swimlane",
    "enable_dump_args",
    "enable_pmu",
    "enable_dep_gen",
    "enable_scope_stats",
    "output_prefix",
    "runtime_env",
    "block_dim",
    "enable_l2_swimlane",
    "enable_dump_tensor",
]


@some
@given(st.lists(st.tuples(st.sampled_from(FIELDS), ANY_VALUE), max_size=8))
def test_a_configuration_survives_any_assignment(assignments):
    config = CallConfig()
    for name, value in assignments:
        before = repr(config)
        try:
            setattr(config, name, value)
        except REFUSALS:
            assert repr(config) == before
    assert isinstance(repr(config), str)
    try:
        config.validate()
    except ValueError as error:
        assert isinstance(error, SimplerError)
    assert repr(pickle.loads(pickle.dumps(config))) == repr(config)


@some
@given(st.binary(max_size=1300), st.integers(-(2**40), 2**40))
def test_a_pickled_configuration_of_unknown_origin(state, block_dim):
    try:
        config = CallConfig.__new__(CallConfig)
        config.__setstate__((state.ljust(1144, b"\xff") if len(state) > 600 else state, block_dim))
    except (*REFUSALS, RuntimeError):
        return
    try:
        config.validate()
    except (*REFUSALS, RuntimeError):
        return
    assert isinstance(repr(config), str)


# ---- callables ----


def valid_chip():
    cores = [CoreCallable.build(signature=[D.IN] * n, binary=bytes([n]) * (30 * n + 1)) for n in (0, 1, 3)]
    return ChipCallable.build(
        signature=[D.IN, D.SCALAR, D.OUT],
        func_name="entry",
        binary=b"orchestration" * 9,
        children=list(zip((0, 7, 1023), cores)),
        config_name="config",
    )


CHIP = bytes(valid_chip())
CORE = bytes(CoreCallable.build(signature=[D.INOUT, D.OUT], binary=b"code" * 40))
# Where the meaning is: counts, sizes, names, ids, offsets, and the headers of the children.
CHIP_FIELDS = [1024, 1028, 1032, 1096, 1100, 1104, 1108, 5196, 5200, 5204, 9292, 9296, 9360]
WORDS = st.one_of(
    st.integers(0, 2**32 - 1),
    st.integers(0, 300),
    st.sampled_from([2**31 - 1, 2**31, 2**32 - 1, 2**32 - 64, 2**32 - 192]),
)

MUTATION = st.one_of(
    st.tuples(st.just("word"), st.sampled_from(CHIP_FIELDS), WORDS),
    st.tuples(st.just("byte"), st.integers(0, len(CHIP) - 1), st.integers(0, 255)),
    st.tuples(st.just("child"), st.integers(0, 2), st.tuples(st.sampled_from([0, 4, 124, 128, 132, 136]), WORDS)),
    st.tuples(st.just("cut"), st.integers(0, len(CHIP)), st.just(0)),
    st.tuples(st.just("grow"), st.integers(1, 500), st.integers(0, 255)),
)


def mutated(blob, mutations):
    blob = bytearray(blob)
    for kind, where, what in mutations:
        if kind == "word" and where + 4 <= len(blob):
            struct.pack_into("<I", blob, where, what)
        elif kind == "byte" and where < len(blob):
            blob[where] = what
        elif kind == "child":
            offset = 9376 + struct.unpack_from("<I", CHIP, 5196 + 4 * where)[0] + what[0]
            if offset + 4 <= len(blob):
                struct.pack_into("<I", blob, offset, what[1])
        elif kind == "cut":
            del blob[where:]
        elif kind == "grow":
            blob += bytes([what]) * where
    return bytes(blob)


def use_everything(chip):
    """Every accessor works on what from_bytes accepted."""
    assert 0 <= chip.sig_count <= 256 and 0 <= chip.child_count <= 1024
    [chip.sig(i) for i in range(chip.sig_count)]
    assert isinstance(chip.func_name, str) and isinstance(chip.config_name, str) and isinstance(repr(chip), str)
    ids = [chip.child_func_id(i) for i in range(chip.child_count)]
    assert len(set(ids)) == len(ids), "two kernels have one id"
    for i in range(chip.child_count):
        core = chip.child(i)
        assert chip.child_offset(i) % 64 == 0 and isinstance(repr(core), str)
        [core.sig(k) for k in range(core.sig_count)]
        assert bytes(CoreCallable.from_bytes(bytes(core))) == bytes(core)
    assert bytes(pickle.loads(pickle.dumps(chip))) == bytes(chip)


@some
@given(st.lists(MUTATION, min_size=1, max_size=4))
@example([("word", 1032, 0xFFFFFFFF)])  # a name that is no text
@example([("word", 1104, 0)])  # two kernels with one id
def test_a_damaged_callable_is_refused_or_usable(mutations):
    blob = mutated(CHIP, mutations)
    try:
        chip = ChipCallable.from_bytes(blob)
    except ValueError as error:
        assert isinstance(error, SimplerError) and "ChipCallable.from_bytes" in str(error)
    else:
        assert bytes(chip) == blob
        use_everything(chip)


@some
@given(
    st.lists(st.tuples(st.integers(0, len(CORE) - 1), st.integers(0, 255)), min_size=1, max_size=4),
    st.integers(0, len(CORE)),
)
def test_a_damaged_kernel_is_refused_or_usable(changes, keep):
    blob = bytearray(CORE)
    for where, what in changes:
        blob[where] = what
    blob = bytes(blob[:keep] if keep % 2 else blob)
    try:
        core = CoreCallable.from_bytes(blob)
    except ValueError as error:
        assert isinstance(error, SimplerError)
    else:
        [core.sig(i) for i in range(core.sig_count)]
        assert bytes(core) == blob and isinstance(repr(core), str)


@some
@given(st.binary(max_size=400))
def test_bytes_that_are_no_callable(raw):
    for cls in (ChipCallable, CoreCallable):
        try:
            cls.from_bytes(raw)
        except ValueError as error:
            assert isinstance(error, SimplerError)


def test_the_fuzzers_first_inputs_are_valid():
    path = Path(__file__).parents[2] / "fuzz" / "abi_checks_fuzz_seeds.py"
    seeds = runpy.run_path(str(path))["seeds"]()
    for seed in seeds:
        kind, data = seed[0], seed[1:]
        if kind == 0:
            use_everything(ChipCallable.from_bytes(data))
        elif kind == 1:
            CoreCallable.from_bytes(data)
        elif kind == 2:
            config = CallConfig.__new__(CallConfig)
            config.__setstate__((data, 0))
            config.validate()
        elif kind == 5:
            blob = ctypes.create_string_buffer(struct.pack("<ii", 1, 0) + data, 8 + len(data))
            assert read_args_from_blob(ctypes.addressof(blob), 8 + len(data)).tensor_count() == 1


# ---- argument blobs ----


@some
@given(st.integers(-3, 2**31 - 1), st.integers(-3, 2**31 - 1), st.binary(max_size=600), st.booleans())
@example(1, 2**31 - 1, b"", False)
def test_an_argument_blob_of_unknown_origin(tensors, scalars, rest, small):
    if small:
        tensors, scalars = tensors % 5, scalars % 5
    blob = struct.pack("<ii", tensors, scalars) + rest
    memory = ctypes.create_string_buffer(blob, len(blob))
    try:
        args = read_args_from_blob(ctypes.addressof(memory), len(blob))
    except RuntimeError as error:
        assert "argument blob" in str(error)
    else:
        assert (args.tensor_count(), args.scalar_count()) == (tensors, scalars)


@some
@given(st.lists(st.one_of(ANY_NUMBER, st.floats(), st.booleans(), st.none(), st.text(max_size=2)), max_size=6))
def test_scalars_are_taken_or_refused(values):
    args = TaskArgs()
    taken = []
    for value in values:
        try:
            args.add_scalar(value)
        except (*REFUSALS, OverflowError):
            continue
        taken.append(value)
    assert [args.scalar(i) for i in range(args.scalar_count())] == [int(v) for v in taken]
    for value in values:
        try:
            assert 0 <= scalar_to_uint64(value) < 2**64
        except TypeError:
            assert value is None or isinstance(value, str)


@some
@given(ANY_NUMBER, st.lists(ANY_NUMBER, max_size=7), st.one_of(ANY_NUMBER, st.none()))
def test_a_descriptor_is_made_or_refused(data, shapes, dtype):
    try:
        tensor = ChipTensor.make(data, tuple(shapes), dtype)
    except (*REFUSALS, OverflowError):
        return
    assert tensor.shapes == tuple(shapes) and isinstance(repr(tensor), str) and tensor.nbytes() >= 0


# ---- texts of the command line ----


@some
@given(st.one_of(st.text(alphabet="0123456789,- x", max_size=12), st.text(max_size=6)))
@example("0-999999999")
def test_a_device_range_is_read_or_refused(text):
    try:
        ids = device_range_to_list(text)
    except ValueError as error:
        assert repr(text)[1:-1] in str(error) or str(text) in str(error)
    else:
        assert ids == sorted(set(ids)) and all(i >= 0 for i in ids)
        assert device_range_to_list(format_device_range(ids)) == ids


@some
@given(st.sets(st.integers(0, 70)))
def test_device_ranges_round_trip(ids):
    assert device_range_to_list(format_device_range(sorted(ids))) == sorted(ids)


@some
@given(st.lists(st.text(alphabet="abC:_[]", max_size=8), max_size=4))
def test_a_case_selector_is_read_or_refused(texts):
    try:
        selectors = parse_selectors(texts)
    except SelectionError as error:
        assert any(text in str(error) for text in texts)
    else:
        assert [s.text for s in selectors] == texts and all(s.cls or s.case for s in selectors)
