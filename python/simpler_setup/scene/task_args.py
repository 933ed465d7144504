"""From a builder and a signature to the arguments of a run.

The i-th tensor pairs with the i-th entry of the signature that is not SCALAR. IN is read; OUT and INOUT are outputs,
which are compared with the golden values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..errors import SceneError
from . import arrays
from .arguments import Scalar, TaskArgsBuilder


def _pairs(builder: TaskArgsBuilder, signature: Sequence[Any]) -> Iterator[tuple[str, Any, Any]]:
    """(name, value, ArgDirection) of each tensor."""
    from simpler.task_interface import ArgDirection

    directions = [direction for direction in signature if direction != ArgDirection.SCALAR]
    names = builder.tensor_names()
    for index, name in enumerate(names):
        if index >= len(directions):
            raise SceneError(
                f"tensor {name!r} (index {index}) has no entry in the signature, which describes "
                f"{len(directions)} of {len(names)} tensors; add its ArgDirection to 'signature'"
            )
        yield name, getattr(builder, name), directions[index]


def output_names(builder: TaskArgsBuilder, signature: Sequence[Any]) -> list[str]:
    """Names of the tensors that the run writes."""
    from simpler.task_interface import ArgDirection

    written = (ArgDirection.OUT, ArgDirection.INOUT)
    return [name for name, _, direction in _pairs(builder, signature) if direction in written]


def count_note(builder: TaskArgsBuilder, signature: Sequence[Any]) -> str | None:
    """What to tell when the signature describes more tensors than there are: legal, a kernel may do with fewer."""
    from simpler.task_interface import ArgDirection

    described = sum(direction != ArgDirection.SCALAR for direction in signature)
    names = builder.tensor_names()
    if described <= len(names):
        return None
    return (
        f"the signature describes {described} tensors, but generate_args gave {len(names)} "
        f"({', '.join(names) or 'none'}); was one forgotten?"
    )


def _scalars(builder: TaskArgsBuilder) -> Iterator[int]:
    from simpler.task_interface import scalar_to_uint64

    for spec in builder.specs:
        if isinstance(spec, Scalar):
            try:
                yield scalar_to_uint64(getattr(builder, spec.name))
            except (TypeError, ValueError) as error:
                raise SceneError(
                    f"scalar {spec.name!r} = {spec.value!r} cannot be passed ({error}); "
                    "use an int, a float or a ctypes value"
                ) from error


def _tag(direction: Any) -> Any:
    from simpler.task_interface import ArgDirection, TensorArgType

    if direction == ArgDirection.OUT:
        return TensorArgType.OUTPUT_EXISTING
    return TensorArgType.INOUT if direction == ArgDirection.INOUT else TensorArgType.INPUT


def _chip_tensor(name: str, value: Any, writable: bool) -> Any:
    from simpler.task_interface import ChipTensor

    seen = arrays.view(name, value, writable=writable)
    return ChipTensor.make(data=seen.address, shapes=seen.shape, dtype=seen.dtype)


def build_chip_task_args(builder: TaskArgsBuilder, signature: Sequence[Any]) -> tuple[Any, list[str]]:
    """(ChipStorageTaskArgs, output names): plain addresses without tags. The builder must outlive the run."""
    from simpler.task_interface import ChipStorageTaskArgs

    outputs = output_names(builder, signature)
    args = ChipStorageTaskArgs()
    for name, value, _ in _pairs(builder, signature):
        args.add_tensor(_chip_tensor(name, value, name in outputs))
    for word in _scalars(builder):
        args.add_scalar(word)
    return args, outputs


def build_l2_ref_args(builder: TaskArgsBuilder, signature: Sequence[Any], worker: Any) -> tuple[Any, list[str]]:
    """(TaskArgs, output names) for a run on a level-2 worker. The builder must outlive the run."""
    from simpler.task_interface import TaskArgs

    del worker  # at level 2 any host memory of this process can be named by its address
    outputs = output_names(builder, signature)
    args = TaskArgs()
    for name, value, direction in _pairs(builder, signature):
        args.add_tensor(_chip_tensor(name, value, name in outputs), _tag(direction))
    for word in _scalars(builder):
        args.add_scalar(word)
    return args, outputs


# -- host level ---------------------------------------------------------------------------------------------------


def rehosted_buffer_for(builder: TaskArgsBuilder, tensor: Any) -> Any:
    """The Buffer that holds a tensor of the builder; ValueError when it was not moved into one."""
    for name, buffer in builder._rehosted.items():
        if getattr(builder, name) is tensor:
            return buffer
    raise SceneError("the tensor is not one of the builder's, or the builder's tensors are not in shared buffers now")


def _wire_tensor(name: str, value: Any, buffer: Any) -> Any:
    seen = arrays.view(name, value)
    return buffer.tensor(seen.shape, seen.dtype)


def rehosted_ref(builder: TaskArgsBuilder, name: str) -> Any:
    """A wire tensor over the buffer that holds the named tensor."""
    if name not in builder._rehosted:
        known = ", ".join(builder._rehosted) or "none"
        raise SceneError(f"tensor {name!r} is not in a shared buffer; those that are: {known}")
    return _wire_tensor(name, getattr(builder, name), builder._rehosted[name])


def rehosted_ref_for(builder: TaskArgsBuilder, tensor: Any) -> Any:
    """rehosted_ref for the tensor object instead of its name."""
    buffer = rehosted_buffer_for(builder, tensor)
    return _wire_tensor("tensor", tensor, buffer)


def build_l3_task_args(
    builder: TaskArgsBuilder, signature: Sequence[Any], worker: Any | None = None
) -> tuple[Any, list[str]]:
    """(TaskArgs, output names) for a chip task of a host-level run.

    Tensors in shared buffers are named by those; others through `worker.make_tensor_arg`.
    """
    from simpler.task_interface import TaskArgs

    outputs = output_names(builder, signature)
    args = TaskArgs()
    for name, value, direction in _pairs(builder, signature):
        if name in builder._rehosted:
            tensor = rehosted_ref(builder, name)
        elif worker is not None:
            seen = arrays.view(name, value, writable=name in outputs)
            tensor = worker.make_tensor_arg(value, shapes=seen.shape, dtype=seen.dtype.value)
        else:
            raise SceneError(f"tensor {name!r} is not in a shared buffer; pass worker= to name it by address")
        args.add_tensor(tensor, _tag(direction))
    for word in _scalars(builder):
        args.add_scalar(word)
    return args, outputs
