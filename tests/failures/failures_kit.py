"""Shared by the tests of this folder: programs, workers, and the check that a run fails as it should."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import re
import select
from pathlib import Path

import numpy as np
import pytest
from simpler import errors
from simpler.task_interface import ArgDirection as D
from simpler.task_interface import CallConfig, ChipCallable, ChipStorageTaskArgs, CoreCallable
from simpler.worker import Worker
from simpler_setup.kernel_compiler import KernelCompiler

PROGRAMS = Path(__file__).parent / "programs"
RUNTIME = "tensormap_and_ringbuffer"
PLATFORM = "a2a3sim"
LIMITED = {1, 2, 3, 4, 7, 8, 11, 100, 102, 103}  # codes of something that is larger, or takes longer, than it may
KERNEL_COUNT = 2  # the same code as func_id 0 and 1

_names = re.search(r"enum Act[^{]*\{([^}]*)\}", (PROGRAMS / "acts.h").read_text()).group(1)
ACT = {name.strip()[1:]: number for number, name in enumerate(filter(str.strip, _names.split(",")))}
OWN_TENSOR = 2**64 - 1
PATIENCE_S = 60.0  # how long a test waits for something that happens at once, before it fails


@functools.cache
def orchestration(source: str, platform: str = PLATFORM) -> bytes:
    return KernelCompiler(platform).compile_orchestration(RUNTIME, PROGRAMS / source)


@functools.cache
def kernel(source: str = "act.cpp", platform: str = PLATFORM) -> bytes:
    return KernelCompiler(platform).compile_incore(PROGRAMS / source)


def program(entry: str, source: str = "codes.cpp", config: str = "", platform: str = PLATFORM) -> ChipCallable:
    """A callable whose orchestration is one entry of a file in programs/."""
    core = CoreCallable.build(signature=[D.INOUT], binary=kernel(platform=platform))
    return ChipCallable.build(
        signature=[D.INOUT, D.INOUT],
        func_name=entry,
        binary=orchestration(source, platform),
        children=[(i, core) for i in range(KERNEL_COUNT)],
        config_name=config,
    )


def rings(window=0, heap=0, dep_pool=0) -> CallConfig:
    config = CallConfig()
    config.runtime_env.ring_task_window = window
    config.runtime_env.ring_heap = heap
    config.runtime_env.ring_dep_pool = dep_pool
    return config


class Bench:
    """A worker, and arrays to run programs on."""

    def __init__(self, **options):
        self.worker = Worker(level=2, platform=PLATFORM, runtime=RUNTIME, **{"sim_threads": 2, **options})
        self.worker.init()
        self.handles = {}
        self.x = np.arange(64, dtype=np.int32)
        self.big = np.zeros((256, 64), dtype=np.int32)

    def run(self, entry, *scalars, config=None, source="codes.cpp", expects=""):
        """Runs an entry on fresh arrays."""
        key = (entry, source, expects)
        if key not in self.handles:
            if len(self.handles) == 60:
                self.worker.unregister(self.handles.pop(next(iter(self.handles))))
            self.handles[key] = self.worker.register(program(entry, source, expects))
        self.x[:] = np.arange(64)
        self.big[:] = np.arange(256 * 64).reshape(256, 64)
        args = ChipStorageTaskArgs()
        args.add_tensor(self.x)
        args.add_tensor(self.big)
        for scalar in scalars:
            args.add_scalar(scalar % 2**64)
        self.worker.run(self.handles[key], args, config)

    def untouched(self):
        return np.array_equal(self.x, np.arange(64)) and np.array_equal(self.big.ravel(), np.arange(256 * 64))

    def check_good(self):
        """The worker still computes correctly."""
        self.run("good")
        expected = np.arange(64, dtype=np.uint32)
        for i in range(150):
            expected = expected * np.uint32(3) + np.uint32(i)
        np.testing.assert_array_equal(self.x.view(np.uint32), expected)

    def fail(self, entry, *scalars, code, name, says=(), by_the_user=False, **options) -> errors.RunError:
        """The entry fails with this code and says these words; nothing is copied back; the worker goes on. Unless it is
        the user's code that says so, the words must name the offending value and, where there is one, the limit."""
        with pytest.raises(errors.RunError) as caught:
            self.run(entry, *scalars, **options)
        error = caught.value
        text = str(error)
        assert (error.code, error.name) == (-code, name), text
        assert re.search(rf"\brun failed with code -{code}\b", text)
        assert re.search(rf"\brun_prepared failed with code -{code}\b", text)
        missing = [words for words in says if not re.search(words, text)]
        assert not missing, f"the text does not say {missing}: {text}"
        assert error.hint and text.endswith(error.hint), text  # the remedy
        if not by_the_user:
            cause = text[text.index(name) : text.rindex(error.hint)]
            said = [match.group() for words in says for match in re.finditer(words, cause)]
            asserted = set(re.findall(r"0x[0-9a-f]+|\d+", " ".join(said)))
            wanted = 2 if code in LIMITED else 1
            assert len(asserted) >= wanted, f"{sorted(asserted)} are asserted of value and limit in: {text}"
        assert self.untouched(), "a failed run wrote to the user's arrays"
        self.check_good()
        return error

    def close(self):
        self.worker.close()


class Leash:
    """What a kernel of the act Spin watches: it spins until release(), writes to its tensor, then says that it did."""

    def __init__(self):
        self.word = ctypes.c_int32(0)
        self.reader, self.writer = os.pipe()

    def scalars(self):
        return ACT["Spin"], ctypes.addressof(self.word), self.writer, 0, 0

    def release(self):
        self.word.value = 1
        assert select.select([self.reader], [], [], PATIENCE_S)[0], "the kernel did not go on"
        os.close(self.reader)
        os.close(self.writer)


@contextlib.contextmanager
def bench(**options):
    """A bench of its own, closed at the end."""
    one = Bench(**options)
    try:
        yield one
    finally:
        one.close()
