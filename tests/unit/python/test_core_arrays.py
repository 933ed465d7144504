"""Arrays of other libraries as arguments: what is inferred, what is refused, what is kept alive."""

import array
import gc
import weakref

import numpy as np
import pytest
from simpler.host_array import describe, host_bytes
from simpler.task_interface import DataType, TaskArgs, TensorArgType, get_dtype_name

torch = pytest.importorskip("torch")

NAMES = {
    "float32": "FLOAT32", "float16": "FLOAT16", "int8": "INT8", "int16": "INT16", "int32": "INT32", "int64": "INT64",
    "uint8": "UINT8", "uint16": "UINT16", "uint32": "UINT32", "uint64": "UINT64",
}  # fmt: skip


class ThroughDlpack:
    """Only DLPack: no other protocol of the array shows."""

    def __init__(self, inner):
        self.inner = inner

    def __dlpack__(self, **kw):
        return self.inner.__dlpack__(**kw)

    def __dlpack_device__(self):
        return self.inner.__dlpack_device__()


def added(value, tag=TensorArgType.INPUT):
    args = TaskArgs()
    args.add_tensor(value, tag)
    return args


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("wrap", [lambda a: a, torch.from_numpy, ThroughDlpack, memoryview])
def test_address_shape_and_type_are_inferred(name, wrap):
    data = np.zeros((3, 4), name)
    t = added(wrap(data), TensorArgType.INOUT).tensor(0)
    assert (t.data, t.shapes, get_dtype_name(t.dtype)) == (data.ctypes.data, (3, 4), NAMES[name])
    assert t.nbytes() == data.nbytes and t.is_contiguous and not t.child_memory


@pytest.mark.parametrize("name, expected", [("bfloat16", "BFLOAT16"), ("float8_e4m3fn", "FP8E4M3FN"),
                                            ("float8_e8m0fnu", "FP8E8M0")])  # fmt: skip
@pytest.mark.parametrize("wrap", [lambda a: a, ThroughDlpack])
def test_small_floats_come_through_torch(name, expected, wrap):
    if not hasattr(torch, name):
        pytest.skip(f"this torch has no {name}")
    source = torch.zeros(4, dtype=getattr(torch, name))
    try:
        source.__dlpack__()
    except (BufferError, RuntimeError) as error:
        if wrap is ThroughDlpack:
            pytest.skip(f"this torch exports no {name} through DLPack: {error}")
    assert get_dtype_name(describe(wrap(source)).dtype) == expected


def test_buffers_of_plain_python():
    data = array.array("f", [1, 2, 3])
    assert describe(data)[1:4] == ((3,), DataType.FLOAT32, True)
    assert describe(b"abc")[1:4] == ((3,), DataType.UINT8, False)
    assert describe(memoryview(bytearray(8)).cast("i"))[1:3] == ((2,), DataType.INT32)


def test_a_scalar_array_counts_as_one_element():
    for value in (np.float32(2).reshape(()), torch.tensor(2.0)):
        assert describe(value).shape == (1,)


@pytest.mark.parametrize(
    "value, kind, text",
    [
        (np.zeros((4, 4), np.float32).T, ValueError, "ascontiguousarray"),
        (np.zeros(8, np.float32)[::2], ValueError, "ascontiguousarray"),
        (torch.zeros(4, 4).t(), ValueError, r"\.contiguous\(\)"),
        (ThroughDlpack(np.zeros((4, 4), np.float32).T), ValueError, "contiguous"),
        (memoryview(bytearray(8))[::2], ValueError, "contiguous"),
        (np.zeros(2), ValueError, "float64"),
        (torch.zeros(2, dtype=torch.bool), ValueError, "bool"),
        (np.zeros(2, ">f4"), ValueError, "byte order"),
        (torch.zeros(2, device="meta"), ValueError, "device meta"),
        (torch.zeros(2, 2).to_sparse(), ValueError, "to_dense"),
        (array.array("d", [1]), ValueError, "'d'"),
        ([1, 2], TypeError, "list is not a tensor"),
        (None, TypeError, "NoneType"),
        (np.zeros((1,) * 6, np.int8), ValueError, "6 dimensions"),
    ],
)
def test_arrays_that_cannot_be_used_say_what_to_do(value, kind, text):
    with pytest.raises(kind, match=text):
        added(value)


@pytest.mark.parametrize("tag, allowed", [("INPUT", True), ("NO_DEP", True), ("OUTPUT", False), ("INOUT", False),
                                          ("OUTPUT_EXISTING", False)])  # fmt: skip
@pytest.mark.parametrize("kind", ["numpy", "dlpack", "bytes"])
def test_read_only_arrays_cannot_be_written(tag, allowed, kind):
    frozen = np.zeros(4, np.int32)
    frozen.flags.writeable = False
    value = {"numpy": frozen, "dlpack": ThroughDlpack(frozen), "bytes": b"1234"}[kind]
    if allowed:
        assert added(value, TensorArgType[tag]).tensor_count() == 1
    else:
        with pytest.raises(ValueError, match="read-only"):
            added(value, TensorArgType[tag])


@pytest.mark.parametrize("make", [lambda: np.zeros(4, np.int32), lambda: torch.zeros(4), lambda: bytearray(4),
                                  lambda: ThroughDlpack(np.zeros(4, np.int32))])  # fmt: skip
def test_arrays_live_until_clear(make):
    class Witness:
        pass

    value, witness = make(), Witness()
    gone = weakref.ref(witness)
    if isinstance(value, ThroughDlpack):
        value.inner = value.inner.view(type("Array", (np.ndarray,), {}))
        value.inner.witness = witness
    elif isinstance(value, torch.Tensor):
        value.witness = witness
    elif isinstance(value, np.ndarray):
        value = value.view(type("Array", (np.ndarray,), {}))
        value.witness = witness
    else:
        value = type("Bytes", (bytearray,), {})(4)
        value.witness = witness
    args = added(value, TensorArgType.INOUT)
    del value, witness
    gc.collect()
    assert gone() is not None
    args.clear()
    gc.collect()
    assert gone() is None


def test_bytes_for_copies_may_be_of_any_type():
    assert host_bytes(np.zeros(3)).nbytes == 24
    assert host_bytes(torch.zeros(2, dtype=torch.complex64)).nbytes == 16
    assert host_bytes(b"abc").nbytes == 3 and not host_bytes(b"abc").writable
    with pytest.raises(TypeError, match="read-only"):
        host_bytes(b"abc", need_write=True)
    with pytest.raises(TypeError, match="int is no host memory"):
        host_bytes(5)
