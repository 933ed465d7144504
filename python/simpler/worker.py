"""Worker: the user's entry point. At level 2 it drives one chip from this process."""

from __future__ import annotations

import math
import threading
import warnings
from collections.abc import Sequence
from typing import Any

from _task_interface import CallConfig, ChipCallable, ChipStorageTaskArgs, DataType, RunTiming, TaskArgs, Tensor

from ._log import get_logger
from .buffer import Buffer
from .callable_identity import CallableHandle
from .callable_registry import RegisteredCallable
from .chip_worker import ChipWorker
from .errors import ArgumentError, ArgumentTypeError, StateError, UnknownHandleError
from .platforms import nearest, platform_named, runtime_named, why_sizes_are_ignored
from .run_handle import RunHandle
from .worker_memory import WorkerMemory

__all__ = ["CallableHandle", "RunHandle", "Worker"]

_CHIP_LEVEL = 2
_CLOSE_BUDGET_S = 10.0  # how long close() waits for runs in flight before it gives up and can be called again
_MAX_SIM_THREADS = 1024

# Options of Worker(...), each with the levels that it matters to.
_CHIP_KEYS = ("platform", "runtime", "device_id", "sim_clusters", "sim_threads", "enable_sdma")
_TREE_KEYS = (
    "comm_profile",
    "device_ids",
    "global_device_ranks",
    "heap_ring_size",
    "num_sub_workers",
    "py_control_timeout_s",
    "remote_heap_ring_size",
    "remote_session_timeout_s",
    "startup_timeout_s",
)

_NEW, _INITIALIZING, _READY, _FAILED, _CLOSED = "new", "initializing", "ready", "failed", "closed"
_ALLOWED = {  # state -> states that may follow
    _NEW: (_INITIALIZING, _CLOSED),
    _INITIALIZING: (_READY, _FAILED),
    _READY: (_CLOSED,),
    _FAILED: (_CLOSED,),
    _CLOSED: (),
}


class Worker:
    """One chip and everything that runs on it.

    Life: new -> ready by init(), -> closed by close(), which ends it for good; a failed init() leaves only close().
    Callables may be registered before and after init(). Threads: any thread may use a ready worker; the thread that
    called init() closes it. A with block closes at its end; init() is explicit.

    Options: platform ("a2a3sim", "a5sim", "a2a3", "a5"), runtime ("tensormap_and_ringbuffer", "host_build_graph"),
    device_id (0), sim_clusters (clusters that the simulator models), sim_threads (its worker threads).
    """

    def __init__(self, level: int, **config: Any) -> None:
        if isinstance(level, bool) or not isinstance(level, int):
            raise ArgumentTypeError(f"level must be an integer, not {type(level).__name__}")
        self.level = int(level)
        self._config = config
        _check_config(self.level, config)
        if self.level > _CHIP_LEVEL:
            raise ArgumentError(
                f"level {self.level} needs a tree of worker processes, which is not in this version; "
                "level 2 drives one chip"
            )
        self._state = _NEW
        self._state_lock = threading.Lock()
        self._owner_thread: int | None = None
        self._chip_worker = ChipWorker()
        if config.get("platform") is not None and config.get("runtime") is not None:
            platform = platform_named(config["platform"])
            self._chip_worker._set_target(platform.arch, platform.name, config["runtime"])
        self._memory = WorkerMemory(self._chip_worker)
        self._chip_shms: list[Any] = []  # shared frames of chip processes; a level-2 chip has none
        self._block_dim_warned = False

    # ---- life ----

    def _become(self, state: str) -> None:
        """The only place that changes the state. Call with the lock held."""
        if state not in _ALLOWED[self._state]:
            raise StateError(f"a worker cannot go from {self._state} to {state}")
        self._state = state

    @property
    def _initialized(self) -> bool:
        return self._state == _READY

    def init(self, prewarm_config: CallConfig | None = None) -> None:
        """Attaches to the device and loads what is registered. KeyError without platform or runtime."""
        with self._state_lock:
            refusals = {
                _INITIALIZING: "init() is already in progress on another thread",
                _READY: "this worker is already initialized",
                _FAILED: "init() failed earlier; close this worker and create a new one",
                _CLOSED: "this worker is closed; create a new one",
            }
            if self._state in refusals:
                raise StateError(refusals[self._state])
            if self.level < _CHIP_LEVEL:
                raise ArgumentError(f"level {self.level} cannot be driven by a worker; level 2 drives one chip")
            for key in ("platform", "runtime"):
                if self._config.get(key) is None:
                    raise UnknownHandleError(f"Worker(level=2) needs {key}=...")
            self._become(_INITIALIZING)
        try:
            self._chip_worker._open(
                self._config["platform"],
                self._config["runtime"],
                self._config.get("device_id", 0),
                sim_clusters=self._config.get("sim_clusters") or 0,
                sim_threads=self._config.get("sim_threads") or 0,
                prewarm_config=prewarm_config,
                enable_sdma=bool(self._config.get("enable_sdma")),
            )
        except BaseException:
            with self._state_lock:
                self._become(_FAILED)
            raise
        with self._state_lock:
            self._owner_thread = threading.get_ident()
            self._become(_READY)

    def close(self, *, timeout_s: float = _CLOSE_BUDGET_S) -> None:
        """Waits up to `timeout_s` for runs in flight, then frees everything. Idempotent.

        TimeoutError if a run takes longer: nothing is torn down and close() can be called again. Only the thread that
        called init() may close a ready worker.
        """
        with self._state_lock:
            if self._state == _INITIALIZING:
                raise StateError("close() was called while init() is in progress")
            if self._state == _READY and self._owner_thread != threading.get_ident():
                raise StateError("close() must be called by the thread that called init()")
            if self._state != _CLOSED:
                self._become(_CLOSED)
        chip = self._chip_worker
        if chip.initialized:
            chip._pipeline.drain(timeout_s)  # type: ignore[union-attr]
        try:
            self._memory.close()
        finally:
            chip.finalize()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _require_ready(self, operation: str) -> None:
        if self._state != _READY:
            raise StateError(f"{operation} requires an initialized (READY) worker; this one is {self._state}")

    # ---- callables ----

    def register(self, target: ChipCallable, *, workers: Sequence[int] | None = None) -> CallableHandle:
        """Makes a callable known; identical content shares one slot. RuntimeError for the 65th different one.

        TypeError for anything but a ChipCallable, and for workers=, which names remote hosts.
        """
        if self._state == _CLOSED:
            self._require_ready("register()")
        if workers is not None:
            raise ArgumentTypeError("workers= applies to remote callables only, which level 2 does not have")
        return self._chip_worker.register_callable(target)

    def unregister(self, handle: CallableHandle) -> None:
        """Drops one handle; KeyError if it is not live. Waits for runs that use the callable."""
        if self._state == _CLOSED:
            self._require_ready("unregister()")
        self._chip_worker.unregister_callable(handle)

    def _resolve_handle(self, handle: CallableHandle) -> RegisteredCallable:
        return self._chip_worker._resolve_handle(handle)

    # ---- runs ----

    def submit(
        self,
        callable: CallableHandle,
        args: TaskArgs | ChipStorageTaskArgs | None = None,
        config: CallConfig | None = None,
    ) -> RunHandle:
        """Starts a run and returns at once. Two may be in flight; one more first waits for the oldest.

        ValueError if config or args contradict the rules; RuntimeError if the run cannot be prepared.
        """
        self._require_ready("submit()")
        entry = self._chip_worker._resolve_handle(callable)
        if config is None:
            config = CallConfig()
        elif not isinstance(config, CallConfig):
            raise ArgumentTypeError(f"config must be a CallConfig, not {type(config).__name__}")
        if config.block_dim and not self._block_dim_warned:
            self._block_dim_warned = True
            get_logger().warning("block_dim=%d has no effect: a run takes the whole device", config.block_dim)
        if args is None:
            args = TaskArgs()
        if isinstance(args, TaskArgs):
            args = self._memory.bind(args)
        elif not isinstance(args, ChipStorageTaskArgs):
            raise ArgumentTypeError(f"args must be TaskArgs or ChipStorageTaskArgs, not {type(args).__name__}")
        return self._chip_worker._submit(entry.slot_id, entry.callable, args, config)

    def run(
        self,
        callable: CallableHandle,
        args: TaskArgs | ChipStorageTaskArgs | None = None,
        config: CallConfig | None = None,
    ) -> RunTiming | None:
        """submit() and wait. The run's RunTiming if args are ChipStorageTaskArgs, else None: see last_run_timing."""
        self._require_ready("run()")
        handle = self.submit(callable, args, config)
        handle.wait()
        return handle.timing if isinstance(args, ChipStorageTaskArgs) else None

    @property
    def last_run_timing(self) -> RunTiming | None:
        """Durations of the run that was finalized last."""
        pipeline = self._chip_worker._pipeline
        return pipeline.last_timing if pipeline is not None else None

    # ---- memory ----

    def malloc(self, nbytes: int, worker_id: int = 0) -> Buffer:
        """Device memory. The Buffer also acts as its address: int(buffer)."""
        self._require_ready("malloc()")
        _only_chip(worker_id)
        return self._memory.malloc(nbytes)

    def free(self, memory: Buffer | int, worker_id: int = 0) -> None:
        """ValueError if it is no live allocation of this worker."""
        self._require_ready("free()")
        _only_chip(worker_id)
        self._memory.free(memory)

    def copy_to(
        self,
        dst: Buffer | int | None = None,
        src: Any = None,
        size: int | None = None,
        worker_id: int = 0,
        *,
        dst_ptr: int | None = None,
        src_ptr: int | None = None,
    ) -> None:
        """Host to device: copy_to(buffer, array), or copy_to(device address, host address, bytes).

        The host side decides the length. Waits for runs in flight that name the memory.
        """
        self._require_ready("copy_to()")
        _only_chip(worker_id)
        self._memory.copy_to(_either("dst", dst, dst_ptr), _either("src", src, src_ptr), size)

    def copy_from(
        self,
        dst: Any = None,
        src: Buffer | int | None = None,
        size: int | None = None,
        worker_id: int = 0,
        *,
        dst_ptr: int | None = None,
        src_ptr: int | None = None,
    ) -> None:
        """Device to host: copy_from(array, buffer), or copy_from(host address, device address, bytes)."""
        self._require_ready("copy_from()")
        _only_chip(worker_id)
        self._memory.copy_from(_either("dst", dst, dst_ptr), _either("src", src, src_ptr), size)

    def create_buffer(self, nbytes: int) -> Buffer:
        """Zeroed shared memory of this host, `buffer.shm.buf` as bytes."""
        self._require_ready("create_buffer()")
        return self._memory.create_buffer(nbytes)

    def release_buffer(self, buffer: Buffer) -> None:
        """Ends a buffer of create_buffer(). RuntimeError while a run in flight names it."""
        self._require_ready("release_buffer()")
        self._memory.release_buffer(buffer)

    def make_tensor_arg(
        self,
        tensor: Any,
        shapes: Sequence[int] | None = None,
        dtype: DataType | int | None = None,
        *,
        strides: Sequence[int] | None = None,
    ) -> Tensor:
        """A host array as a Tensor, without copying. Shape and type default to the array's own; strides count elements.

        The Tensor, and TaskArgs that it is added to, keep the array alive.
        """
        return self._memory.make_tensor_arg(tensor, shapes, dtype, strides)

    def committed_device_memory(self, worker_id: int = 0) -> int:
        """Bytes of live device allocations."""
        self._require_ready("committed_device_memory()")
        _only_chip(worker_id)
        return self._chip_worker.committed_device_memory

    # ---- facts ----

    @property
    def aicpu_dlopen_count(self) -> int:
        """Orchestrations loaded for the device so far; never decreases."""
        return self._chip_worker.aicpu_dlopen_count

    @property
    def host_dlopen_count(self) -> int:
        """Orchestrations loaded in the host process so far (host_build_graph)."""
        return self._chip_worker.host_dlopen_count

    @property
    def run_stream_set_create_count(self) -> int:
        """Sets of hardware streams made for runs; a simulated chip has none."""
        return self._chip_worker.run_stream_set_create_count

    @property
    def live_domains(self) -> dict[str, Any]:
        """Communication domains by name; level 2 has none."""
        return {}


# ---- checks of the constructor's options ----


def _check_config(level: int, config: dict[str, Any]) -> None:
    for key in ("startup_timeout_s", "py_control_timeout_s", "remote_session_timeout_s"):
        if key in config:
            _check_seconds(key, config[key])
    known = (*_CHIP_KEYS, *_TREE_KEYS)
    for key, value in config.items():
        if key not in known:
            _warn(f"Worker option {key!r} is unknown and has no effect{nearest(key, known)}")
        elif level == _CHIP_LEVEL and key in _TREE_KEYS and value not in (None, 0, [], ()):
            _warn(f"Worker option {key!r} has no effect at level 2")
    if config.get("runtime") is not None:
        runtime_named(config["runtime"])
    _check_int("device_id", config.get("device_id"), 0, 2**31 - 1)
    _check_int("sim_threads", config.get("sim_threads"), 1, _MAX_SIM_THREADS)
    if config.get("platform") is None:
        return
    platform = platform_named(config["platform"])
    _check_int("sim_clusters", config.get("sim_clusters"), 1, platform.max_clusters, f" on {platform.name}")
    for key in ("sim_clusters", "sim_threads"):
        if not platform.simulated and config.get(key) is not None:
            _warn(f"Worker option {key!r} has no effect on {platform.name}: {why_sizes_are_ignored()}")


def _warn(text: str) -> None:
    warnings.warn(text, UserWarning, stacklevel=4)  # the caller of Worker(...)


def _check_int(name: str, value: Any, low: int, high: int, where: str = "") -> None:
    if value is None:
        return
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise ArgumentTypeError(f"{name} must be an integer, not {type(value).__name__}")
    if not low <= int(value) <= high:
        raise ArgumentError(f"{name} is {value}; allowed{where}: {low} to {high}")


def _check_seconds(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ArgumentTypeError(f"{name} must be a number of seconds, not {type(value).__name__}")
    if not math.isfinite(value) or value <= 0:
        raise ArgumentError(f"{name} is {value}; it must be a positive, finite number of seconds")


def _only_chip(worker_id: int) -> None:
    if worker_id != 0:
        raise ArgumentError(f"worker_id is {worker_id}; a level-2 worker has one chip, number 0")


def _either(name: str, value: Any, older: Any) -> Any:
    """An argument that also has an older keyword, name_ptr."""
    if (value is None) == (older is None):
        raise ArgumentTypeError(f"pass exactly one of {name} and {name}_ptr")
    return older if value is None else value
