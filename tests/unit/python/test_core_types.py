"""Types of the native module: callables, tensors, arguments, run options, and their rules."""

import copy
import ctypes
import gc
import pickle
import struct
import weakref

import _task_interface as native
import numpy as np
import pytest
import simpler.task_interface as ti
from simpler.errors import ArgumentError, SimplerError
from simpler.task_interface import ArgDirection as D
from simpler.task_interface import (
    CallConfig,
    ChipCallable,
    ChipStorageTaskArgs,
    ChipTensor,
    CoreCallable,
    DataType,
    RuntimeEnv,
    TaskArgs,
    TensorArgType,
)

NONCE = b"\x01\x02\x03\x04\x05\x06\x07\x08"


def raises(kind, text=None):
    return pytest.raises(kind, match=text)


# ---- enumerations and constants ----


def test_enum_numbers_are_those_of_the_binary_interface():
    assert {m.name: m.value for m in DataType} == {
        "FLOAT32": 0, "FLOAT16": 1, "INT32": 2, "INT16": 3, "INT8": 4, "UINT8": 5, "BFLOAT16": 6, "INT64": 7,
        "UINT64": 8, "UINT16": 9, "UINT32": 10, "FP8E4M3FN": 12, "FP8E8M0": 13, "FP4E2M1": 14,
    }  # fmt: skip
    assert [m.value for m in TensorArgType] == [0, 1, 2, 3, 4]
    assert [m.name for m in native.BackendKind] == [
        "FORK_SHM", "POSIX_SHM", "VMM_WINDOW", "REMOTE_SIDECAR", "DEVICE_MALLOC", "FORK_COW",
    ]  # fmt: skip
    assert native.AddressSpace.DEVICE == 1 and native.AccessMode.READWRITE == 2  # integers too
    assert ti.TaskState.FAILED.value == 5
    assert ti.arg_direction_name(D.INOUT) == "INOUT"


def test_element_sizes_and_names():
    sizes = {m: ti.get_element_size(m) for m in DataType}
    assert [sizes[m] for m in DataType] == [4, 2, 4, 2, 1, 1, 2, 8, 8, 2, 4, 1, 1, 1]
    assert ti.get_element_size(7) == 8 and ti.get_dtype_name(DataType.BFLOAT16) == "BFLOAT16"
    for bad, kind in ((11, ValueError), (15, ValueError), (-1, ValueError), ("FLOAT32", TypeError), (1.0, TypeError)):
        with raises(kind, "dtype"):
            ti.get_element_size(bad)


def test_constants():
    assert (native.MAX_TENSOR_DIMS, native.MAX_REGISTERED_CALLABLE_IDS, native.RUNTIME_ENV_RING_COUNT) == (5, 64, 4)
    assert native.MAILBOX_SIZE == 3 * native.MAILBOX_FRAME_SIZE == 3 * 65536
    assert native.MAILBOX_STATE_VALUES["PREPARE_READY"] == 12 and len(native.MAILBOX_STATE_VALUES) == 13
    assert native.CHIP_TENSOR_STRIDE_BYTES == 128 and native.CHIP_TENSOR_ADDRESS_SPACE_OFFSET == 43
    assert ChipStorageTaskArgs.sizeof() == 33856
    assert isinstance(native.__build_commit__, str)


# ---- callables ----


def chip(children=((0, b"kernel"),), **changes):
    parts = {
        "signature": [D.IN, D.OUT],
        "func_name": "entry",
        "binary": b"orchestration",
        "children": [(i, CoreCallable.build(signature=[D.IN], binary=code)) for i, code in children],
        "config_name": "configure",
    }
    return ChipCallable.build(**{**parts, **changes})


def test_core_callable_reads_back_what_it_was_built_from():
    core = CoreCallable.build(signature=[D.IN, D.INOUT], binary=bytearray(b"xyz"), arg_index=[0, 1])
    assert (core.sig_count, core.binary_size, core.buffer_size()) == (2, 3, 195)
    assert [core.sig(i) for i in range(2)] == [D.IN, D.INOUT]
    assert repr(core) == "CoreCallable(sig_count=2, binary_size=3)"
    raw = ctypes.string_at(core.buffer_ptr(), core.buffer_size())
    assert struct.unpack_from("<3i", raw) == (1, 3, 0) and struct.unpack_from("<iIQ", raw, 128) == (2, 3, 0)
    assert raw[144:192] == bytes(48) and raw[192:] == b"xyz"
    empty = CoreCallable.build(signature=[], binary=b"")
    assert (empty.sig_count, empty.binary_size) == (0, 0)


def test_chip_callable_layout():
    built = chip(children=((7, b"a" * 5), (900, b"b" * 70)))
    raw = bytes(built)
    assert raw == ctypes.string_at(built.buffer_ptr(), built.buffer_size())
    assert struct.unpack_from("<iI", raw, 1024) == (2, 13)
    assert raw[1032:1038] == b"entry\0" and struct.unpack_from("<I", raw, 1096) == (5,)
    assert struct.unpack_from("<2i", raw, 1100) == (7, 900) and struct.unpack_from("<2I", raw, 5196) == (64, 320)
    assert struct.unpack_from("<i", raw, 9292) == (2,) and raw[9296:9306] == b"configure\0"
    assert raw[9376:9389] == b"orchestration" and raw[9376 + 64 + 192 :][:5] == b"aaaaa"
    assert built.buffer_size() == 9376 + 320 + 192 + 70


def test_chip_callable_survives_bytes_and_pickle():
    built = chip(children=((3, b"x"), (5, b"yy")))
    for other in (ChipCallable.from_bytes(bytes(built)), pickle.loads(pickle.dumps(built))):
        assert bytes(other) == bytes(built)
        assert (other.func_name, other.config_name, other.child_count) == ("entry", "configure", 2)
        assert [other.child_func_id(i) for i in range(2)] == [3, 5]
        assert other.child(1).binary_size == 2 and other.child_offset(1) % 64 == 0


def test_long_names_are_cut():
    assert chip(func_name="f" * 100).func_name == "f" * 63
    assert chip(func_name="f" * 62 + "é").func_name.startswith("f" * 62)


@pytest.mark.parametrize(
    "build, kind, text",
    [
        (lambda: CoreCallable.build(signature=[D.IN] * 33, binary=b""), ValueError, "33.*32"),
        (lambda: CoreCallable.build(signature=["IN"], binary=b""), TypeError, r"signature\[0\]"),
        (lambda: CoreCallable.build(signature=3, binary=b""), TypeError, "signature"),
        (lambda: CoreCallable.build(signature=[], binary="text"), TypeError, "binary"),
        (lambda: chip(signature=[D.IN] * 257), ValueError, "257.*256"),
        (lambda: chip(children=[(i, b"") for i in range(1025)]), ValueError, "1025.*1024"),
        (lambda: chip(children=[(1024, b"")]), ValueError, "func_id 1024"),
        (lambda: chip(children=[(-1, b"")]), ValueError, "func_id -1"),
        (lambda: chip(children=[(4, b""), (4, b"")]), ValueError, "func_id 4 is given twice"),
        (lambda: ChipCallable.build([], "f", b"", [(0, b"no core")]), TypeError, r"children\[0\]\[1\]"),
        (lambda: ChipCallable.build([], "f", b"", [0]), TypeError, r"children\[0\]"),
        (lambda: ChipCallable.from_bytes(b"short"), ValueError, "header"),
        (lambda: ChipCallable.from_bytes(bytes(chip())[:-1]), ValueError, "child 0"),
        (lambda: chip().sig(2), IndexError, "index 2"),
        (lambda: chip().child(-1), IndexError, "index -1"),
        (lambda: chip().child_offset(1), IndexError, "index 1"),
    ],
)
def test_bad_callables_are_refused_with_what_is_allowed(build, kind, text):
    with raises(kind, text) as caught:
        build()
    assert isinstance(caught.value, SimplerError)


# ---- ChipTensor ----


def test_chip_tensor_fields_and_text():
    t = ChipTensor.make(0x1000, (3, 5), DataType.FLOAT16)
    assert (t.data, t.shapes, t.ndims, t.dtype, t.nbytes()) == (0x1000, (3, 5), 2, DataType.FLOAT16, 30)
    assert (t.strides, t.start_offset, t.is_contiguous, t.child_memory) == ((5, 1), 0, True, False)
    assert repr(t) == "ChipTensor(data=0x1000, shapes=(3, 5), dtype=FLOAT16)"
    device = ChipTensor.make(16, [4], 2, True)
    assert repr(device) == "ChipTensor(data=0x10, shapes=(4,), dtype=INT32, child_memory=True)"
    assert native.ContinuousTensor is ChipTensor


def test_chip_tensor_setters_keep_it_consistent():
    t = ChipTensor.make(64, (4, 4), DataType.INT32, strides=(8, 1))
    assert not t.is_contiguous and t.strides == (8, 1)
    t.shapes = (2, 3, 4)
    assert (t.shapes, t.strides, t.is_contiguous, t.nbytes()) == ((2, 3, 4), (12, 4, 1), True, 96)
    with pytest.raises(ValueError, match="elements apart"):
        t.shapes = (2**31, 2**31, 8)
    t.dtype = DataType.INT8
    t.data, t.child_memory = 4096, True
    assert (t.nbytes(), t.data, t.child_memory) == (24, 4096, True)


@pytest.mark.parametrize(
    "arguments, kind, text",
    [
        ((1, (), DataType.INT8), ValueError, "1 to 5"),
        ((1, (1,) * 6, DataType.INT8), ValueError, "6 dimensions"),
        ((1, (-1,), DataType.INT8), ValueError, r"shapes\[0\] is -1"),
        ((1, (2**32,), DataType.INT8), ValueError, r"shapes\[0\]"),
        ((1, (2**31, 2**31, 8), DataType.INT32), ValueError, "dimension 0 are 17179869184 elements apart"),
        ((1, (242243305, 49477, 384773), DataType.INT32), ValueError, "apart"),  # 4 * (2**62 + 1) bytes
        ((1, (2**32 - 1, 2**31), DataType.INT64), ValueError, "9223372034707292160 elements; allowed"),
        ((1, (2**31,), DataType.INT8, False, (2**31,)), ValueError, r"strides\[0\] is 2147483648: .* more than"),
        ((1, (2, 2**31), DataType.INT8, False, (1, 2**30)), ValueError, r"strides\[1\] is 1073741824"),
        ((1, ("2",), DataType.INT8), TypeError, r"shapes\[0\]"),
        ((1, 4, DataType.INT8), TypeError, "sequence"),
        ((-1, (1,), DataType.INT8), TypeError, "unsigned"),
        ((1.5, (1,), DataType.INT8), TypeError, "data"),
        ((1, (1,), 99), ValueError, "dtype"),
        ((1, (2, 2), DataType.INT8, False, (1,)), ValueError, "strides"),
        ((1, (2, 2), DataType.INT8, False, (0, 1)), ValueError, r"strides\[0\]"),
    ],
)
def test_bad_chip_tensors(arguments, kind, text):
    with raises(kind, text):
        ChipTensor.make(*arguments)


# ---- buffers and wire tensors ----


def descriptor(**changes):
    parts = {
        "identity": native.CanonicalIdentity(NONCE, 7),
        "address_space": native.AddressSpace.HOST,
        "access": native.AccessMode.READWRITE,
        "backend_kind": native.BackendKind.FORK_SHM,
        "nbytes": 256,
        "body": (0x10000).to_bytes(8, "little"),
    }
    return native.BufferDescriptor(**{**parts, **changes})


def tensor(buffer=None, byte_offset=0, shapes=(4, 8), strides=(8, 1), dtype=DataType.FLOAT32):
    return native.Tensor(buffer or descriptor(), byte_offset, shapes, strides, dtype)


def test_identity_is_its_three_fields():
    a, b = native.CanonicalIdentity(NONCE, 7), native.CanonicalIdentity(NONCE, 7, 1)
    assert a == b and hash(a) == hash(b) and len({a, b, native.CanonicalIdentity(NONCE, 7, 2)}) == 2
    assert (a.owner_instance_id, a.buffer_id, a.generation) == (NONCE, 7, 1)
    assert a != native.CanonicalIdentity(NONCE, 8) and a != 7
    assert pickle.loads(pickle.dumps(a)) == a
    with raises(ValueError, "exactly 8"):
        native.CanonicalIdentity(b"short", 1)


def test_descriptor_fields():
    d = descriptor(owner_worker_path_id=native._intern_worker_path("host/chip0"))
    assert (d.nbytes, d.body, d.backend_kind, d.access) == (256, (0x10000).to_bytes(8, "little"), 0, 2)
    assert d.owner_worker_path == "host/chip0" and d == descriptor(owner_worker_path_id=d.owner_worker_path_id)
    assert descriptor(owner_worker_path_id=999999).owner_worker_path == "<path#999999>"


@pytest.mark.parametrize(
    "changes, text",
    [
        ({"identity": native.CanonicalIdentity(NONCE, 7, 0)}, "generation"),
        ({"body": b""}, "body"),
        ({"body": bytes(8)}, "body"),
        ({"body": bytes(33)}, "body"),
        ({"address_space": native.AddressSpace.DEVICE}, "address_space"),
        ({"backend_kind": native.BackendKind.DEVICE_MALLOC}, "address_space"),
        ({"backend_kind": native.BackendKind.FORK_COW}, "access"),
        ({"backend_kind": native.BackendKind.POSIX_SHM, "body": b"a/b"}, "body"),
        ({"backend_kind": native.BackendKind.REMOTE_SIDECAR}, "body"),
        ({"access": 3}, "access"),
        ({"backend_kind": 6}, "backend_kind"),
    ],
)
def test_bad_descriptors_name_the_field(changes, text):
    with raises(ValueError, text):
        descriptor(**changes)


def test_wire_tensor_fields_and_equality():
    t = tensor(byte_offset=128, shapes=[2, 3], strides=[4, 1])
    assert (t.byte_offset, t.ndims, t.shapes, t.strides, t.dtype, t.nbytes()) == (128, 2, (2, 3), (4, 1), 0, 24)
    assert t == tensor(byte_offset=128, shapes=(2, 3), strides=(4, 1), dtype=0) and t != tensor()
    assert t.buffer == descriptor()


@pytest.mark.parametrize(
    "changes, text",
    [
        ({"shapes": (), "strides": ()}, "ndims"),
        ({"shapes": (1,) * 6, "strides": (1,) * 6}, "6 dimensions"),
        ({"strides": (1,)}, "2 shapes but 1 strides"),
        ({"shapes": (4, 0)}, r"shapes\[1\]"),
        ({"strides": (8, 0)}, r"strides\[1\]"),
        ({"byte_offset": 2}, "byte_offset"),
        ({"shapes": (9, 8)}, "needs"),
        ({"byte_offset": 132}, "needs"),
        ({"shapes": (2**32 - 1, 2**32 - 1), "strides": (2**32 - 1, 2**32 - 1)}, "needs"),
    ],
)
def test_bad_wire_tensors(changes, text):
    with raises(ValueError, text):
        tensor(**changes)


# ---- TaskArgs ----


@pytest.mark.parametrize("make", [TaskArgs, ChipStorageTaskArgs])
def test_arguments_keep_order_and_check_indices(make):
    args = make()
    args.add_tensor(ChipTensor.make(64, (2,), DataType.INT32))
    args.add_scalar(2**64 - 1)
    args.add_scalar(np.int64(5))
    assert (args.tensor_count(), args.scalar_count(), len(args)) == (1, 2, 3)
    assert (args.tensor(0).data, args.scalar(0), args.scalar(1)) == (64, 2**64 - 1, 5)
    with raises(RuntimeError, "after a scalar"):
        args.add_tensor(ChipTensor.make(64, (2,), DataType.INT32))
    for use in (lambda: args.tensor(1), lambda: args.tensor(-1), lambda: args.scalar(2)):
        with raises(IndexError):
            use()
    for bad in (-1, 2**64, 1.5, "1", None):
        with raises(TypeError, "scalar"):
            args.add_scalar(bad)
    args.clear()
    assert len(args) == 0
    args.add_tensor(ChipTensor.make(64, (2,), DataType.INT32))


def test_tensors_of_the_fixed_block_are_live_references():
    args = ChipStorageTaskArgs()
    args.add_tensor(ChipTensor.make(64, (2,), DataType.INT32))
    args.tensor(0).data = 128
    assert args.tensor(0).data == 128
    assert struct.unpack_from("<Q", ctypes.string_at(args.__ptr__(), 8)) == (128,)


def test_the_fixed_block_has_a_capacity():
    args = ChipStorageTaskArgs()
    for _ in range(256):
        args.add_tensor(ChipTensor.make(64, (2,), DataType.INT32))
    with raises(IndexError, "256"):
        args.add_tensor(ChipTensor.make(64, (2,), DataType.INT32))
    for i in range(128):
        args.add_scalar(i)
    with raises(IndexError, "128"):
        args.add_scalar(0)
    many = TaskArgs()
    for _ in range(257):
        many.add_tensor(ChipTensor.make(64, (2,), DataType.INT32))
    with raises(IndexError, "256"):
        native._bind_task_args(many, None)


GRANTS = {"READ": ["INPUT"], "WRITE": ["OUTPUT_EXISTING"], "READWRITE": ["INPUT", "OUTPUT_EXISTING", "INOUT"]}


@pytest.mark.parametrize("access", GRANTS)
@pytest.mark.parametrize("tag", [m.name for m in TensorArgType])
def test_a_tag_must_be_granted_by_the_buffer(access, tag):
    view = tensor(descriptor(access=native.AccessMode[access]))
    args = TaskArgs()
    if tag in GRANTS[access] or tag in ("OUTPUT", "NO_DEP"):
        args.add_tensor(view, TensorArgType[tag])
        assert args.tag(0) == TensorArgType[tag]
    else:
        with raises(ValueError, "access not granted"):
            args.add_tensor(view, TensorArgType[tag])
        assert len(args) == 0


def test_tags_can_be_changed():
    args = TaskArgs()
    args.add_tensor(tensor())
    args.set_tag(0, TensorArgType.INOUT)
    assert args.tag(0) == TensorArgType.INOUT
    with raises(IndexError):
        args.set_tag(1, TensorArgType.INPUT)


def test_task_args_can_be_weakly_referenced_and_collected_in_cycles():
    class Array(bytearray):
        pass

    args, array = TaskArgs(), Array(8)
    args.add_tensor(array, TensorArgType.INOUT)
    array.args = args
    gone = weakref.ref(args)
    del args, array
    gc.collect()
    assert gone() is None


# ---- resolving ----


def test_materialize_places_views_in_the_given_memory():
    args = TaskArgs()
    args.add_tensor(tensor(byte_offset=128, shapes=(2, 3), strides=(4, 1)))
    args.add_scalar(9)
    identity = descriptor().identity
    chip_args = native.materialize_task_args(args, {identity: (0x5000, native.AddressSpace.DEVICE)})
    t = chip_args.tensor(0)
    assert (t.data, t.start_offset, t.shapes, t.strides, t.child_memory) == (0x5000, 32, (2, 3), (4, 1), True)
    assert not t.is_contiguous and chip_args.scalar(0) == 9
    with raises(RuntimeError, "no memory is known"):
        native.materialize_task_args(args, {})
    assert native._bind_task_args(args, None).tensor(0).data == 0x10000  # the descriptor's own address


def blob_of(tensors, scalars, counts=None):
    head = struct.pack("<2i", *(counts or (len(tensors), len(scalars))))
    return head + b"".join(tensors) + struct.pack(f"<{len(scalars)}Q", *scalars)


def wire_bytes(**changes):
    fields = {"magic": 0x5342, "ndims": 1, "shape": 4, "stride": 1, "dtype": 2, **changes}
    descriptor_bytes = struct.pack("<HBBB3x", fields["magic"], 0, 2, 0) + struct.pack("<8sQI12x", NONCE, 7, 1)
    descriptor_bytes += struct.pack("<QIH2x32s", 256, 0, 8, (0x10000).to_bytes(8, "little"))
    shape = struct.pack("<5I", fields["shape"], 0, 0, 0, 0) + struct.pack("<5I", fields["stride"], 0, 0, 0, 0)
    return descriptor_bytes + struct.pack("<QI", 0, fields["ndims"]) + shape + struct.pack("<B3x", fields["dtype"])


def read(blob, capacity=None):
    keep = ctypes.create_string_buffer(blob, len(blob))
    return native.read_args_from_blob(ctypes.addressof(keep), len(blob) if capacity is None else capacity)


def test_arguments_from_bytes():
    assert len(wire_bytes()) == 144
    args = read(blob_of([wire_bytes(), wire_bytes()], [1, 2**64 - 1]))
    assert (args.tensor_count(), args.scalar_count(), args.scalar(1)) == (2, 2, 2**64 - 1)
    assert args.tensor(1).shapes == (4,) and args.tensor(0).buffer.identity == descriptor().identity


@pytest.mark.parametrize(
    "blob, text",
    [
        (b"", "header"),
        (blob_of([], [], (-1, 0)), "negative"),
        (blob_of([], [], (0, -1)), "negative"),
        (blob_of([], [], (1, 0)), "need"),
        (blob_of([], [], (2**31 - 1, 2**31 - 1)), "need"),
        (blob_of([wire_bytes()], [5])[:-1], "need"),
        (blob_of([wire_bytes(magic=0)], []), "tensor 0.*magic"),
        (blob_of([wire_bytes(shape=65)], []), "tensor 0.*needs"),
        (blob_of([wire_bytes(dtype=11)], []), "tensor 0.*dtype"),
    ],
)
def test_damaged_bytes_are_runtime_errors(blob, text):
    with raises(RuntimeError, text):
        read(blob)


# ---- run options ----


def test_config_is_a_value_that_pickles_and_copies():
    config = CallConfig()
    config.enable_pmu, config.output_prefix, config.block_dim = 2, "/tmp/out", 5
    config.runtime_env.ring_heap = 4096
    for other in (copy.copy(config), copy.deepcopy(config), pickle.loads(pickle.dumps(config))):
        assert repr(other) == repr(config) and other.block_dim == 5
        other.runtime_env.ring_heap = 0
        assert config.runtime_env.ring_heap == [4096] * 4


def test_config_text():
    config = CallConfig()
    assert repr(config) == (
        "CallConfig(aicpu_thread_num=0, enable_chip_swimlane=0, enable_dump_args=0, enable_pmu=0, "
        "enable_dep_gen=False, enable_scope_stats=False)"
    )
    config.runtime_env.ring_task_window = 16
    config.output_prefix = "/tmp/x"
    assert "ring_task_window=[16, 16, 16, 16]" in repr(config) and repr(config).endswith("output_prefix='/tmp/x')")


def test_older_names_are_the_same_fields():
    config = CallConfig()
    config.enable_l2_swimlane, config.enable_dump_tensor = True, 2
    assert (config.enable_chip_swimlane, config.enable_dump_args) == (4, 2)


@pytest.mark.parametrize(
    "field, value, kind",
    [
        ("enable_dep_gen", 1, TypeError),
        ("enable_scope_stats", 0, TypeError),
        ("enable_chip_swimlane", "4", TypeError),
        ("enable_pmu", 2**31, ValueError),
        ("aicpu_thread_num", 1.5, TypeError),
        ("output_prefix", "p" * 1024, ValueError),
        ("output_prefix", "é" * 512, ValueError),
        ("output_prefix", "a\0b", ValueError),
        ("output_prefix", 5, TypeError),
        ("runtime_env", 5, TypeError),
    ],
)
def test_config_refuses(field, value, kind):
    config = CallConfig()
    with raises(kind):
        setattr(config, field, value)
    assert repr(config) == repr(CallConfig())


def test_huge_levels_are_clamped():
    config = CallConfig()
    config.enable_chip_swimlane, config.enable_dump_args = 10**30, -(10**30)
    assert (config.enable_chip_swimlane, config.enable_dump_args) == (4, 0)


def test_a_prefix_may_be_a_path(tmp_path):
    config = CallConfig()
    config.output_prefix = tmp_path
    assert config.output_prefix == str(tmp_path)


@pytest.mark.parametrize(
    "value, kind",
    [
        ([1] * 3, ValueError),
        ([], ValueError),
        ("abcd", TypeError),
        (-1, ValueError),
        (2**64, ValueError),
        (True, TypeError),
        ([1, 2, 3, "4"], TypeError),
        (1.5, TypeError),
    ],
)
def test_ring_values_are_all_or_nothing(value, kind):
    env = RuntimeEnv()
    env.ring_heap = [1, 2, 3, 4]
    with raises(kind, "ring_heap"):
        env.ring_heap = value
    assert env.ring_heap == [1, 2, 3, 4]


def test_validation_names_the_entry_and_what_is_allowed():
    config = CallConfig()
    config.runtime_env.ring_task_window = [0, 4, 24, 8]
    with raises(ArgumentError, r"ring_task_window\[2\] is 24; allowed.*power of two"):
        config.validate()


# ---- scalars ----


@pytest.mark.parametrize(
    "value, bits",
    [
        (1.0, 0x3F800000),
        (ctypes.c_float(-2.0), 0xC0000000),
        (ctypes.c_double(1.0), 0x3FF0000000000000),
        (5, 5),
        (-1, 2**64 - 1),
        (2**64 + 3, 3),
        (True, 1),
        (ctypes.c_int32(-1), 2**64 - 1),
        (ctypes.c_uint8(200), 200),
        (ctypes.c_bool(True), 1),
        (ctypes.c_char(b"A"), 65),
        (ctypes.c_void_p(None), 0),
        (np.float32(1.0), 0x3F800000),
        (np.int16(-1), 2**64 - 1),
        (1e300, 0x7F800000),
    ],
)
def test_scalar_bits(value, bits):
    assert ti.scalar_to_uint64(value) == bits


def test_scalars_of_other_types_are_refused():
    with raises(TypeError, "str"):
        ti.scalar_to_uint64("1")


def test_domain_context_gives_addresses_by_name():
    from simpler.buffer import wrap_vmm_window

    window = wrap_vmm_window(0x9000, 64, NONCE, 1)
    context = ti.ChipDomainContext("d", 0, 2, 1, 0x9000, 64, {"x": window})
    assert context.buffer_ptrs == {"x": 0x9000} and context.buffers["x"] is window
