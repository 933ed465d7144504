"""Outputs against golden values: |output - golden| <= atol + rtol * |golden|, NaN equal to NaN.

One code path for torch and NumPy: both offer the functions used here under the same names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import GoldenMismatch
from . import arrays


def _widened(value: Any, array: Any) -> tuple[Any, Any]:
    """(module, float64 copy of the flattened array)."""
    if arrays.is_torch(array):
        import torch

        flat = array.detach().cpu().contiguous().reshape(-1)
        if flat.dtype.is_floating_point and flat.element_size() == 1:
            flat = flat.to(torch.float32)  # 8-bit floats convert to float32 only
        return torch, flat.to(torch.float64)
    import numpy

    return numpy, numpy.ascontiguousarray(array).reshape(-1).astype(numpy.float64)


def _same_bits(a: Any, b: Any) -> Any | None:
    """Mask of elements that are equal as 64-bit integers, or None for floating types.

    float64 cannot tell neighbouring large integers apart, so integers are compared as what they are.
    """
    if arrays.is_torch(a):
        import torch

        if a.dtype.is_floating_point or a.dtype.is_complex:
            return None
        return a.detach().cpu().reshape(-1).to(torch.int64) == b.detach().cpu().reshape(-1).to(torch.int64)
    return (a == b).reshape(-1) if a.dtype.kind in "iub" else None


def _at(flat: int, shape: Sequence[int]) -> str:
    index: list[int] = []
    for extent in reversed(shape):
        flat, rest = divmod(flat, extent)
        index.insert(0, rest)
    return "[" + ", ".join(map(str, index)) + "]"


def _number(value: float, integral: bool) -> str:
    return str(int(value)) if integral and abs(value) < 2**53 else f"{value:.9g}"


def mismatch(name: str, output: Any, golden: Any, rtol: float, atol: float) -> str | None:
    """A report when the two differ by more than the tolerances, None when they agree."""
    a, b = arrays.as_array(name, output), arrays.as_array(name, golden)
    if arrays.is_torch(a) != arrays.is_torch(b):
        import numpy

        a, b = numpy.asarray(a), numpy.asarray(b)
    tolerances = f"rtol={rtol:g}, atol={atol:g}"
    if tuple(a.shape) != tuple(b.shape):
        shapes = f"the output has shape {tuple(a.shape)}, the golden value {tuple(b.shape)}"
        return f"Golden mismatch on {name!r}: max_diff=nan, {tolerances}\n  {shapes}"
    xp, got = _widened(output, a)
    _, want = _widened(golden, b)
    equal = _same_bits(a, b)
    integral = equal is not None
    if equal is None:
        equal = (got == want) | (xp.isnan(got) & xp.isnan(want))
    finite = xp.isfinite(got) & xp.isfinite(want)
    zero = xp.zeros_like(got)
    # integers that differ only beyond float64's precision differ by at least one
    diff = xp.where(finite & ~equal, xp.abs(xp.where(finite, got, zero) - xp.where(finite, want, zero)), zero)
    if integral:
        diff = xp.where(~equal & (diff == 0), xp.ones_like(diff), diff)
    limit = atol + rtol * xp.abs(xp.where(finite, want, zero))
    bad = ~equal & (~finite | (diff > limit))
    count = int(bad.sum())
    if count == 0:
        return None
    total = int(got.shape[0])
    first = int(bad.nonzero()[0][0])
    relative = xp.where(want != 0, diff / xp.where(want != 0, xp.abs(want), xp.ones_like(want)), zero)
    relative = xp.where(finite, relative, zero)
    worst, worst_relative = int(diff.argmax()), int(relative.argmax())
    some_finite = bool((finite & bad).any())
    largest = f"{float(diff[worst]):.6g}" if some_finite else "nan"
    shape = tuple(int(extent) for extent in a.shape)
    lines = [
        f"Golden mismatch on {name!r}: max_diff={largest}, {tolerances}",
        f"  shape {shape}, dtype {arrays.dtype_name(a)}: "
        f"{count} of {total} elements differ ({100.0 * count / total:.3g} %)",
        f"  first at {_at(first, shape)}: got {_number(float(got[first]), integral)}, "
        f"want {_number(float(want[first]), integral)}",
        f"  max abs error {float(diff[worst]):.6g} at {_at(worst, shape)}, "
        f"max rel error {float(relative[worst_relative]):.6g} at {_at(worst_relative, shape)}"
        if some_finite
        else "  no finite element differs by more than that",
    ]
    if arrays.dtype_name(a) != arrays.dtype_name(b):
        lines.append(f"  note: dtypes differ, output {arrays.dtype_name(a)}, golden {arrays.dtype_name(b)}")
    lines += _hints(xp, got, want, count, total)
    return "\n".join(lines)


_SHIFTS = 64  # how far a shifted output is looked for, in elements
_SAMPLE = 4096  # elements that are compared for it


def _hints(xp: Any, got: Any, want: Any, count: int, total: int) -> list[str]:
    nans, expected = int(xp.isnan(got).sum()), int(xp.isnan(want).sum())
    if bool((got == 0).all()) and not bool((want == 0).all()):
        return ["  hint: the output is all zeros: the task that writes it did not run, or wrote another tensor"]
    if nans > expected:
        return [f"  hint: {nans} elements of the output are NaN, {expected} of the golden values"]
    if expected > nans:
        return [f"  hint: {expected} elements of the golden values are NaN, {nans} of the output"]
    if count < total and bool(((got == 0) | (got == want)).all()):
        return ["  hint: every wrong element is zero: a part of the output was not written"]
    shift = _shift(got[:_SAMPLE], want[:_SAMPLE])
    if shift:
        place = f"[i + {shift}]" if shift > 0 else f"[i - {-shift}]"
        return [f"  hint: the output is shifted by {abs(shift)} elements: output[i] is golden{place}"]
    return []


def _shift(got: Any, want: Any) -> int:
    """s when got[i] is want[i + s] nearly everywhere and not by chance; 0 when there is no such s."""
    size = int(got.shape[0])

    def share(s: int) -> float:
        mine, theirs = (got[: size - s], want[s:]) if s >= 0 else (got[-s:], want[: size + s])
        return float((abs(mine - theirs) <= 1e-6 * abs(theirs)).sum()) / max(1, size - abs(s))

    if size < 8 or share(0) > 0.5:
        return 0
    for step in range(1, min(_SHIFTS, size // 2) + 1):
        for s in (step, -step):
            if share(s) > 0.95:
                return s
    return 0


def compare_outputs(output: Any, golden: Any, names: Sequence[str], rtol: float, atol: float) -> None:
    """Compare the named tensors of two builders; GoldenMismatch (an AssertionError) reports every one that differs."""
    reports = [mismatch(name, getattr(output, name), getattr(golden, name), rtol, atol) for name in names]
    wrong = [report for report in reports if report is not None]
    if wrong:
        raise GoldenMismatch("\n".join(wrong))
