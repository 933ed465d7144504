"""Stand-ins for the native module and the worker, so that the scene-test framework is tested without running tasks.

`install(set_module)` puts them into sys.modules. A FakeWorker "runs" a program by calling `FakeWorker.program` with the
arguments as NumPy views of the real memory. As a module it serves subprocesses too: `python -c "import setup_fakes"`
(with `activate()`), or pytest's `-p setup_fakes`.
"""

import contextlib
import ctypes
import enum
import json
import os
import struct
import sys
import types

import numpy as np


class DataType(enum.Enum):
    FLOAT32, FLOAT16, INT32, INT16, INT8, UINT8, BFLOAT16, INT64, UINT64, UINT16, UINT32 = range(11)
    FP8E4M3FN, FP8E8M0, FP4E2M1 = 12, 13, 14


class ArgDirection(enum.Enum):
    SCALAR, IN, OUT, INOUT = range(4)


class TensorArgType(enum.Enum):
    INPUT, OUTPUT, INOUT, OUTPUT_EXISTING, NO_DEP = range(5)


_NUMPY = {"FLOAT32": "f4", "FLOAT16": "f2", "INT32": "i4", "INT16": "i2", "INT8": "i1", "UINT8": "u1", "INT64": "i8",
          "UINT64": "u8", "UINT16": "u2", "UINT32": "u4", "BFLOAT16": "u2"}  # fmt: skip


class ChipTensor:
    def __init__(self, data, shapes, dtype):
        self.data, self.shapes, self.dtype = data, shapes, dtype

    @staticmethod
    def make(data, shapes, dtype, child_memory=False):
        assert not child_memory
        return ChipTensor(data, tuple(shapes), dtype)

    def numpy(self):
        kind = np.dtype(_NUMPY[self.dtype.name])
        size = int(np.prod(self.shapes)) * kind.itemsize
        memory = (ctypes.c_char * size).from_address(self.data)
        return np.frombuffer(memory, kind).reshape(self.shapes)


class _Arguments:
    def __init__(self):
        self.tensors, self.tags, self.scalars = [], [], []

    def add_tensor(self, tensor, tag=TensorArgType.INPUT):
        self.tensors.append(tensor)
        self.tags.append(tag)

    def add_scalar(self, word):
        self.scalars.append(word)


class TaskArgs(_Arguments):
    pass


class ChipStorageTaskArgs(_Arguments):
    pass


class RuntimeEnv:
    ring_task_window = ring_heap = ring_dep_pool = 0


class CallConfig:
    def __init__(self):
        self.runtime_env = RuntimeEnv()
        self.output_prefix = ""

    def validate(self):
        if self.runtime_env.ring_task_window == 24:
            raise ValueError("ring_task_window: 24 is not a power of two")


class CoreCallable:
    def __init__(self, signature, binary):
        self.signature, self.binary = signature, binary

    @staticmethod
    def build(signature, binary):
        return CoreCallable(signature, binary)


class ChipCallable:
    def __init__(self, **fields):
        self.__dict__.update(fields)

    @staticmethod
    def build(**fields):
        return ChipCallable(**fields)


def scalar_to_uint64(value):
    if isinstance(value, float):
        return struct.unpack("<I", struct.pack("<f", value))[0]
    if hasattr(value, "value"):
        raw = bytes(value)
        return int.from_bytes(raw, "little") if not isinstance(value.value, int) else value.value & (2**64 - 1)
    return int(value) & (2**64 - 1)


class FakeWorker:
    """Records what it is asked; `program(arrays, scalars, config)` is the run."""

    made = []
    program = staticmethod(lambda arrays, scalars, config: None)

    def __init__(self, **settings):
        self.settings, self.handles, self.runs, self.closed = settings, {}, [], False
        FakeWorker.made.append(self)

    def init(self):
        pass

    def register(self, target):
        handle = object()
        self.handles[handle] = target
        return handle

    def unregister(self, handle):
        del self.handles[handle]

    def _resolve_handle(self, handle):
        return self.handles[handle]

    def run(self, handle, args=None, config=None):
        self._resolve_handle(handle)
        self.runs.append((handle, args, config))
        type(self).program([t.numpy() for t in args.tensors], args.scalars, config)
        self.last_run_timing = types.SimpleNamespace(host_wall_us=10.0 * len(self.runs), device_wall_us=1.0)

    def close(self, *, timeout_s=10.0):
        self.closed = True


def install(set_module):
    """Put the stand-ins into sys.modules by `set_module(name, module or None)`; None means "forget it"."""
    native = types.ModuleType("_task_interface")
    native.DataType = DataType
    native._buffer_info = lambda view: (np.asarray(view).ctypes.data, view.nbytes, not view.readonly)
    native.get_element_size = lambda dtype: np.dtype(_NUMPY[dtype.name]).itemsize
    native._dlpack_info = None
    task_interface = types.ModuleType("simpler.task_interface")
    enums, tensors, programs = (DataType, ArgDirection, TensorArgType), (ChipTensor,), (CoreCallable, ChipCallable)
    for item in (*enums, *tensors, *programs, TaskArgs, ChipStorageTaskArgs, RuntimeEnv, CallConfig, scalar_to_uint64):
        setattr(task_interface, item.__name__, item)
    worker = types.ModuleType("simpler.worker")
    worker.Worker = FakeWorker
    set_module("_task_interface", native)
    set_module("simpler.task_interface", task_interface)
    set_module("simpler.worker", worker)
    set_module("simpler.host_array", None)  # imported again, on top of the native stand-in


def activate():
    def set_module(name, module):
        sys.modules.pop(name, None)
        if module is not None:
            sys.modules[name] = module

    install(set_module)


@contextlib.contextmanager
def installed():
    """The stand-ins for the time of a block; what was there before comes back."""
    names = ("_task_interface", "simpler.task_interface", "simpler.worker", "simpler.host_array")
    before = {name: sys.modules.get(name) for name in names}
    package = sys.modules.get("simpler")
    parts = [name.split(".")[1] for name in names if "." in name]
    attributes = {name: vars(package)[name] for name in parts if package and name in vars(package)}
    FakeWorker.made = []
    FakeWorker.program = staticmethod(lambda arrays, scalars, config: None)
    activate()
    try:
        yield FakeWorker
    finally:
        for name, module in before.items():
            sys.modules.pop(name, None)
            if module is not None:
                sys.modules[name] = module
        for name, value in attributes.items():
            setattr(package, name, value)


def report(**facts):
    """A line that a test of a subprocess finds again."""
    print(f"\nREPORT {json.dumps(facts, sort_keys=True)}", flush=True)


if os.environ.get("SETUP_FAKES") == "1":
    activate()
