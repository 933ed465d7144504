"""Golden comparison: what counts as equal, and what the report says."""

import types

import numpy as np
import pytest
from simpler_setup.scene.compare import compare_outputs, mismatch

KINDS = ["numpy", "torch"]


def make(kind, values, dtype="float32"):
    if kind == "numpy":
        return np.array(values, dtype)
    torch = pytest.importorskip("torch")
    return torch.tensor(values, dtype=getattr(torch, dtype))


def report(kind, got, want, dtype="float32", rtol=1e-5, atol=1e-5):
    return mismatch("out", make(kind, got, dtype), make(kind, want, dtype), rtol, atol)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "got, want",
    [
        ([1.0, 2.0], [1.0, 2.000001]),
        ([float("nan"), 1.0], [float("nan"), 1.0]),
        ([float("inf"), -float("inf")], [float("inf"), -float("inf")]),
        ([100.0], [100.0009]),
        ([], []),
    ],
)
def test_what_is_equal(kind, got, want):
    assert report(kind, got, want) is None


@pytest.mark.parametrize("kind", KINDS)
def test_a_report_locates_and_measures(kind):
    got, want = np.zeros((2, 3), np.float32) + 1, np.zeros((2, 3), np.float32) + 1
    got[0, 2], got[1, 1] = 1.5, -2.0
    text = report(kind, got.tolist(), want.tolist())
    assert text.startswith("Golden mismatch on 'out': max_diff=3, rtol=1e-05, atol=1e-05\n")
    assert "shape (2, 3), dtype float32: 2 of 6 elements differ (33.3 %)" in text
    assert "first at [0, 2]: got 1.5, want 1" in text
    assert "max abs error 3 at [1, 1], max rel error 3 at [1, 1]" in text


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "got, want, hint",
    [
        ([0, 0, 0], [1, 2, 3], "all zeros: the task that writes it did not run, or wrote another tensor"),
        ([1, float("nan"), 3], [1, 2, 3], "1 elements of the output are NaN"),
        ([1, 2, 3], [1, float("nan"), 3], "1 elements of the golden values are NaN"),
        ([1, 0, 3], [1, 2, 3], "a part of the output was not written"),
        ([1, 9, 3], [1, 2, 3], ""),
    ],
)
def test_hints(kind, got, want, hint):
    text = report(kind, got, want)
    assert hint in text and ("hint" in text) == bool(hint)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "got, want", [([float("inf")], [1.0]), ([float("inf")], [-float("inf")]), ([float("nan")], [1.0])]
)
def test_values_that_are_not_finite_differ(kind, got, want):
    assert "1 of 1 elements differ" in report(kind, got, want) and "max_diff=nan" in report(kind, got, want)


@pytest.mark.parametrize("kind", KINDS)
def test_large_integers_are_told_apart(kind):
    big = 2**62
    assert report(kind, [big], [big], "int64") is None
    assert "max_diff=1" in report(kind, [big], [big + 1], "int64", rtol=0.0, atol=0.5)
    assert report(kind, [5], [6], "int32", rtol=0.0, atol=1.0) is None


@pytest.mark.parametrize("kind", KINDS)
def test_unsigned_and_small_types(kind):
    assert "got 255, want 254" in report(kind, [255], [254], "uint8")
    assert "got 65535, want 1" in report(kind, [65535], [1], "uint16")
    assert report(kind, [1.5], [1.5], "float16") is None


def test_torch_types_that_numpy_lacks():
    torch = pytest.importorskip("torch")
    assert "got 2, want 1" in report("torch", [2.0], [1.0], "bfloat16")
    one, two = (torch.tensor([v]).to(torch.float8_e4m3fn) for v in (1.0, 2.0))
    assert mismatch("out", one, one, 0, 0) is None and "dtype float8_e4m3fn" in mismatch("out", one, two, 0, 0)


def test_a_bool_output():
    assert report("numpy", [True], [True], "bool") is None and "1 of 1" in report("numpy", [True], [False], "bool")


def test_shapes_must_agree():
    text = report("numpy", [1.0], [1.0, 2.0])
    assert text.startswith("Golden mismatch on 'out'") and "the output has shape (1,), the golden value (2,)" in text


def test_different_types_are_compared_by_value():
    text = mismatch("out", np.array([1], np.int32), np.array([2.0], np.float32), 0, 0)
    assert "dtypes differ, output int32, golden float32" in text
    torch = pytest.importorskip("torch")
    assert mismatch("out", torch.tensor([1.0]), np.array([1.0], np.float32), 0, 0) is None


def test_every_wrong_output_is_reported():
    a = types.SimpleNamespace(x=np.ones(1), y=np.ones(1), z=np.ones(1))
    b = types.SimpleNamespace(x=np.zeros(1), y=np.ones(1), z=np.zeros(1))
    with pytest.raises(AssertionError) as caught:
        compare_outputs(a, b, ["x", "y", "z"], 1e-5, 1e-5)
    assert "'x'" in str(caught.value) and "'z'" in str(caught.value) and "'y'" not in str(caught.value)
    compare_outputs(a, b, ["y"], 1e-5, 1e-5)
