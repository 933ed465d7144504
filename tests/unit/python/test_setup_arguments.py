"""Builders, signatures and the arguments of a run."""

import array
import ctypes
import sys
from pathlib import Path

import numpy as np
import pytest
from simpler_setup import CallableNamespace, Scalar, TaskArgsBuilder, TensorArg
from simpler_setup.scene import task_args
from simpler_setup.scene.arrays import ArrayError

sys.path.insert(0, str(Path(__file__).parent))
import setup_fakes
from setup_fakes import ArgDirection as D
from setup_fakes import TensorArgType as Tag


@pytest.fixture(autouse=True)
def fakes():
    with setup_fakes.installed():
        yield


def builder(**tensors):
    tensors = tensors or {"x": np.arange(4, dtype=np.float32), "y": np.zeros((2, 2), np.int32)}
    return TaskArgsBuilder(*(TensorArg(n, v) for n, v in tensors.items()), Scalar("n", 7), Scalar("gain", 1.5))


# -- builder --------------------------------------------------------------------------------------------------------


def test_a_builder_keeps_order_and_gives_values_by_name():
    b = builder()
    assert b.tensor_names() == ["x", "y"] and [s.name for s in b.specs] == ["x", "y", "n", "gain"]
    assert b.x is b.specs[0].value and b.gain == 1.5
    with pytest.raises(AttributeError, match="no argument 'z'; there are x, y, n, gain"):
        b.z  # noqa: B018


@pytest.mark.parametrize(
    "add, words",
    [
        (lambda b: b.add_tensor("late", np.ones(1)), "'late' comes after scalar 'n'"),
        (lambda b: b.add_scalar("x", 1), "'x' is given twice"),
        (lambda b: b.add_scalar("clone", 1), "'clone' is a member"),
        (lambda b: b.add_scalar("specs", 1), "'specs' is a member"),
        (lambda b: b.add_scalar("", 1), "non-empty string"),
    ],
)
def test_a_refused_addition_leaves_the_builder_unchanged(add, words):
    b = builder()
    with pytest.raises(ValueError, match=words):
        add(b)
    assert [s.name for s in b.specs] == ["x", "y", "n", "gain"]


def test_a_bare_value_is_refused():
    with pytest.raises(TypeError, match="got ndarray"):
        TaskArgsBuilder(np.ones(1))


def test_a_clone_shares_nothing():
    b = TaskArgsBuilder(TensorArg("a", np.zeros(2)), Scalar("k", ctypes.c_int64(7)))
    c = b.clone()
    c.a += 1
    c.k.value = 99
    assert b.a.tolist() == [0, 0] and b.k.value == 7 and c.tensor_names() == ["a"]


def test_a_clone_of_torch_tensors():
    torch = pytest.importorskip("torch")
    b = builder(t=torch.zeros(3, dtype=torch.bfloat16))
    c = b.clone()
    c.t.add_(1)
    assert b.t.sum() == 0 and c.t.dtype == torch.bfloat16


def test_a_rebound_argument_is_used():
    b = builder()
    b.x = np.full(4, 9, np.float32)
    assert b.clone().x[0] == 9


def test_a_namespace_keeps_objects():
    ns, thing = CallableNamespace({"go": 1}), object()
    assert ns.go == 1 and ns.keep(thing) is thing and ns.keep(1, 2) == (1, 2) and ns.keep() is None
    with pytest.raises(AttributeError, match="no callable 'stop'; there are go"):
        ns.stop  # noqa: B018


# -- signature ------------------------------------------------------------------------------------------------------


def test_tensors_pair_with_the_signature_and_get_its_tags():
    b = builder(a=np.ones(2, np.float32), b=np.ones(2, np.int8), c=np.ones(2, np.int64))
    args, outputs = task_args.build_l2_ref_args(b, [D.IN, D.SCALAR, D.OUT, D.INOUT], None)
    assert args.tags == [Tag.INPUT, Tag.OUTPUT_EXISTING, Tag.INOUT] and outputs == ["b", "c"]
    assert args.scalars == [7, 0x3FC00000]
    assert [t.data for t in args.tensors] == [v.ctypes.data for v in (b.a, b.b, b.c)]
    assert [t.dtype.name for t in args.tensors] == ["FLOAT32", "INT8", "INT64"]


def test_the_plain_form_has_no_tags():
    b = builder()
    args, outputs = task_args.build_chip_task_args(b, [D.IN, D.INOUT])
    assert isinstance(args, setup_fakes.ChipStorageTaskArgs) and outputs == ["y"] and args.tensors[1].shapes == (2, 2)


def test_a_short_signature_names_the_tensor():
    with pytest.raises(ValueError, match=r"tensor 'y' \(index 1\).*signature.*1 of 2"):
        task_args.build_l2_ref_args(builder(), [D.IN, D.SCALAR], None)


def test_a_scalar_that_cannot_be_passed_is_named():
    b = TaskArgsBuilder(Scalar("when", "now"))
    with pytest.raises(ValueError, match="scalar 'when' = 'now'"):
        task_args.build_l2_ref_args(b, [], None)


# -- arrays ---------------------------------------------------------------------------------------------------------


def read_only():
    x = np.ones(3, np.float32)
    x.flags.writeable = False
    return x


@pytest.mark.parametrize(
    "value, direction, words",
    [
        (read_only(), D.OUT, "read-only"),
        (np.ones((4, 4), np.float32).T[:, ::2], D.IN, "contiguous"),
        (np.ones(3, np.float64), D.IN, "float64"),
        (np.ones(3, ">f4"), D.IN, "byte order"),
        (np.ones((1,) * 6, np.float32), D.IN, "6 dimensions"),
        (bytes(4), D.INOUT, "read-only"),
        ("text", D.IN, "str"),
        (3, D.IN, "int"),
    ],
)
def test_an_unusable_array_is_refused_by_name(value, direction, words):
    with pytest.raises(ArrayError, match=f"tensor 'bad'.*{words}") as caught:
        task_args.build_l2_ref_args(builder(bad=value), [direction], None)
    assert isinstance(caught.value, ValueError)


def test_read_only_inputs_are_fine():
    b = builder(ok=read_only())
    args, _ = task_args.build_l2_ref_args(b, [D.IN], None)
    assert args.tensors[0].numpy().tolist() == [1, 1, 1]


def test_plain_buffers_are_tensors_too():
    b = builder(a=array.array("i", [1, 2]), b=bytearray(3))
    args, _ = task_args.build_l2_ref_args(b, [D.IN, D.OUT], None)
    assert [t.dtype.name for t in args.tensors] == ["INT32", "UINT8"] and args.tensors[0].numpy().tolist() == [1, 2]


def test_torch_tensors_are_checked_too():
    torch = pytest.importorskip("torch")
    b = builder(t=torch.arange(3, dtype=torch.int32))
    args, _ = task_args.build_l2_ref_args(b, [D.INOUT], None)
    assert args.tensors[0].numpy().tolist() == [0, 1, 2]
    with pytest.raises(ArrayError, match="'t'.*contiguous"):
        task_args.build_l2_ref_args(builder(t=torch.zeros(4, 4).t()), [D.IN], None)


# -- host level -----------------------------------------------------------------------------------------------------


class Buffer:
    def tensor(self, shape, dtype):
        return (self, tuple(shape), dtype)


def test_tensors_in_shared_buffers_are_named_by_them():
    b, buffer = builder(), Buffer()
    b._rehosted["x"] = buffer
    assert task_args.rehosted_ref(b, "x") == (buffer, (4,), setup_fakes.DataType.FLOAT32)
    assert task_args.rehosted_buffer_for(b, b.x) is buffer and task_args.rehosted_ref_for(b, b.x)[0] is buffer
    with pytest.raises(ValueError, match="'y' is not in a shared buffer; those that are: x"):
        task_args.rehosted_ref(b, "y")
    with pytest.raises(ValueError, match="not one of the builder's"):
        task_args.rehosted_buffer_for(b, b.y)
    with pytest.raises(ValueError, match="pass worker="):
        task_args.build_l3_task_args(b, [D.IN, D.OUT])
    del b._rehosted["x"]
    assert task_args.output_names(b, [D.IN, D.OUT]) == ["y"]
