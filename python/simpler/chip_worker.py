"""ChipWorker: one chip, driven directly from this process."""

from __future__ import annotations

import copy
import re
import threading
from typing import Any

from _task_interface import (
    MAX_REGISTERED_CALLABLE_IDS,
    CallConfig,
    ChipCallable,
    ChipStorageTaskArgs,
    RunTiming,
    _ChipWorker,
    _set_log_threshold,
)

from . import _log
from .callable_identity import CallableHandle
from .callable_registry import CallableRegistry, RegisteredCallable
from .errors import ArgumentError, ArgumentTypeError, DeviceError, StateError, failure_phrase
from .native_runs import NativeRuns, NativeRunToken
from .platforms import platform_named, runtime_named
from .run_handle import RunHandle, RunPipeline

__all__ = ["ChipWorker"]

_NEW, _INITIALIZING, _READY, _FINALIZED = "new", "initializing", "ready", "finalized"
_UNSUPPORTED = -2  # the host's code for what a device cannot do
_PATH_OF_RUNTIME = re.compile(r"(?P<arch>[^/]+)/(?P<variant>sim|onboard)/(?P<runtime>[^/]+)/[^/]+$")


def _no_copy_engines(platform: str) -> DeviceError:
    error = DeviceError(
        f"{failure_phrase('simpler_init', _UNSUPPORTED)}: enable_sdma asks for engines for asynchronous copies, and "
        f"{platform} offers none in this version: leave the option out"
    )
    error.code = _UNSUPPORTED
    return error


class ChipWorker:
    """One device: memory, callables, runs.

    Life: new -> ready by init(), -> finalized by finalize() on the thread that called init(); there is no way back.
    Callables may be registered before init(). Threads: any, except for finalize().
    """

    def __init__(self) -> None:
        self._state = _NEW
        self._state_lock = threading.Lock()
        self._owner_thread: int | None = None
        self._native: Any = None
        self._pipeline: RunPipeline | None = None
        self._native_runs: NativeRuns | None = None
        self._raw_slots: dict[int, ChipCallable] = {}  # filled by number, not through the registry
        self._set_target("", "", "")

    def _set_target(self, arch: str, platform: str, runtime: str) -> None:
        """Whom callables are for; part of their identity. Before anything is registered."""
        self._registry = CallableRegistry((arch, platform, runtime), self._install, self._remove, self._slot_is_free)

    # ---- life ----

    def init(
        self,
        device_id: int,
        bins: Any,
        log_level: int | None = None,
        prewarm_config: CallConfig | None = None,
        enable_sdma: bool = False,
        log_info_v: int | None = None,
    ) -> None:
        """Attaches to a device. bins: what RuntimeBuilder(platform).get_binaries(runtime) returned."""
        platform, runtime = _target_of(bins)
        if log_info_v is not None:
            _log.get_logger().warning("log_info_v has no effect: use log_level, for example logging.V3")
        self._open(
            platform, runtime, device_id, log_level=log_level, prewarm_config=prewarm_config, enable_sdma=enable_sdma
        )

    def _open(
        self,
        platform: str,
        runtime: str,
        device_id: int,
        *,
        sim_clusters: int = 0,
        sim_threads: int = 0,
        log_level: int | None = None,
        prewarm_config: CallConfig | None = None,
        enable_sdma: bool = False,
    ) -> None:
        with self._state_lock:
            if self._state == _INITIALIZING:
                raise StateError("init() is already in progress on another thread")
            if self._state == _READY:
                raise StateError("this ChipWorker is already initialized")
            if self._state == _FINALIZED:
                raise StateError("this ChipWorker is finalized; create a new one")
            self._state = _INITIALIZING
        native = None
        try:
            _check_log_level(log_level)
            if enable_sdma:  # refused here, and not where a kernel misses its workspace
                raise _no_copy_engines(platform)
            _set_log_threshold(_log.get_current_config() if log_level is None else log_level)
            if prewarm_config is not None:
                prewarm_config.validate()
            target = platform_named(platform)
            size = (sim_clusters, sim_threads) if target.simulated else (0, 0)
            native = _ChipWorker(target.name, runtime_named(runtime), device_id, *size)
            if prewarm_config is not None:
                native.prewarm(prewarm_config)
            self._native = native
            self._pipeline = RunPipeline(native)
            self._native_runs = NativeRuns(native)
            for entry in self._registry.entries():
                native.register_callable(entry.slot_id, entry.callable)
        except BaseException:
            with self._state_lock:
                self._native = self._pipeline = self._native_runs = None
                self._state = _NEW
            if native is not None:
                native.finalize()
            raise
        with self._state_lock:
            self._owner_thread = threading.get_ident()
            self._state = _READY

    def finalize(self) -> None:
        """Waits for runs, frees everything, detaches. Idempotent."""
        with self._state_lock:
            if self._state == _INITIALIZING:
                raise StateError("finalize() was called while init() is in progress")
            if self._state == _READY and self._owner_thread != threading.get_ident():
                raise StateError("finalize() must be called by the thread that called init()")
            was_ready, self._state = self._state == _READY, _FINALIZED
        if was_ready:
            self._native_runs.abandon_all()  # type: ignore[union-attr]
            try:
                self._native.finalize()
            except DeviceError as failure:  # everything is given back or given up: nothing is left to do
                _log.get_logger().error("closing device %d: %s", self._native.device_id, failure)

    @property
    def initialized(self) -> bool:
        return self._state == _READY

    @property
    def _impl(self) -> Any:
        return self._live()

    def _live(self) -> Any:
        """The native object; RuntimeError unless initialised."""
        if self._state == _READY:
            return self._native
        if self._state == _FINALIZED:
            raise StateError("this ChipWorker is finalized; create a new one")
        raise StateError("ChipWorker is not initialized; call init() first")

    # ---- callables ----

    def register_callable(self, chip: ChipCallable) -> CallableHandle:
        """Loads a callable, or counts one more user of identical content. RuntimeError for the 65th different one."""
        if self._state == _FINALIZED:
            self._live()
        return self._registry.register(chip)

    prepare_callable = register_callable  # the older name

    def unregister_callable(self, handle: CallableHandle) -> None:
        """KeyError if the handle is not live. Waits for runs that use the callable."""
        self._registry.unregister(handle, self._settle_users)

    def _resolve_handle(self, handle: CallableHandle) -> RegisteredCallable:
        return self._registry.resolve(handle)

    def _register_callable_at_slot(self, slot: int, chip: ChipCallable) -> None:
        if not isinstance(chip, ChipCallable):
            raise ArgumentTypeError(f"expected a ChipCallable, not {type(chip).__name__}")
        native = self._live()
        if not 0 <= slot < MAX_REGISTERED_CALLABLE_IDS:
            raise StateError(
                f"{failure_phrase('register_callable', -1)}: slot {slot} is outside of 0 to "
                f"MAX_REGISTERED_CALLABLE_IDS - 1 ({MAX_REGISTERED_CALLABLE_IDS - 1})"
            )
        if not self._slot_is_free(slot) or any(entry.slot_id == slot for entry in self._registry.entries()):
            raise StateError(f"{failure_phrase('register_callable', -1)}: slot {slot} is occupied; unregister it first")
        self._refuse_during_native_runs("register_callable")
        native.register_callable(slot, chip)
        self._raw_slots[slot] = chip

    _prepare_callable_at_slot = _register_callable_at_slot  # the older name

    def _unregister_slot(self, slot: int) -> None:
        native = self._live()
        self._refuse_during_native_runs("unregister_callable")
        self._settle_users(slot)
        if slot in self._raw_slots:
            native.unregister_callable(slot)
            del self._raw_slots[slot]

    def _slot_is_free(self, slot: int) -> bool:
        return slot not in self._raw_slots

    def _install(self, slot: int, chip: ChipCallable) -> None:
        if self._state == _READY:  # else init() does it
            self._native.register_callable(slot, chip)

    def _remove(self, slot: int) -> None:
        if self._state == _READY:
            self._native.unregister_callable(slot)

    def _settle_users(self, slot: int) -> None:
        if self._pipeline is not None and self._state == _READY:
            self._pipeline.settle_users_of_slot(slot)

    def _refuse_during_native_runs(self, operation: str) -> None:
        if self._native_runs is not None and self._native_runs.outstanding():
            raise StateError(f"{failure_phrase(operation, -1)}: a native run is prepared or active; finalize it first")

    # ---- runs ----

    def run(
        self, handle: CallableHandle, args: ChipStorageTaskArgs, config: CallConfig | None = None, **overrides: Any
    ) -> RunTiming:
        """Runs a callable and waits. overrides are set on a copy of config."""
        self._live()
        entry = self._registry.resolve(handle)
        return self._run_and_wait(entry.slot_id, entry.callable, args, config, overrides)

    def _run_slot(
        self, slot: int, args: ChipStorageTaskArgs, config: CallConfig | None = None, **overrides: Any
    ) -> RunTiming:
        self._live()
        return self._run_and_wait(slot, self._callable_in(slot), args, config, overrides)

    def _run_and_wait(
        self, slot: int, chip: ChipCallable, args: Any, config: CallConfig | None, overrides: dict
    ) -> RunTiming:
        run = self._submit(slot, chip, args, _config_with(config, overrides))
        run.wait()
        return run.timing  # type: ignore[return-value]

    def _submit(self, slot: int, chip: ChipCallable, args: ChipStorageTaskArgs, config: CallConfig) -> RunHandle:
        self._live()
        if not isinstance(args, ChipStorageTaskArgs):
            raise ArgumentTypeError(f"args must be ChipStorageTaskArgs, not {type(args).__name__}")
        if self._native_runs.outstanding():  # type: ignore[union-attr]
            raise StateError("a pipeline slot already owns an unfinished native run; finalize it first")
        config.validate()
        return self._pipeline.submit(slot, chip, args._snapshot(chip), config)  # type: ignore[union-attr]

    def _callable_in(self, slot: int) -> ChipCallable:
        """What a slot holds; TypeError if `slot` is no number, RuntimeError if it is empty."""
        if isinstance(slot, bool) or not isinstance(slot, int):
            raise ArgumentTypeError(f"slot must be an integer, not {type(slot).__name__}")
        for entry in self._registry.entries():
            if entry.slot_id == slot:
                return entry.callable
        if self._slot_is_free(slot):
            raise StateError(f"{failure_phrase('run', -1)}: callable slot {slot} is empty; register a callable first")
        return self._raw_slots[slot]

    def _run_slot_with_pipeline_lease(
        self, slot: int, args: ChipStorageTaskArgs, slot_id: int, generation: int, config: CallConfig | None = None
    ) -> RunTiming:
        token = self._prepare_native_run_with_pipeline_lease(slot, args, slot_id, generation, config)
        try:
            self._launch_native_run(token)
        except BaseException:
            self._finalize_native_run(token)
            raise
        return self._finalize_native_run(token)

    def _prepare_native_run_with_pipeline_lease(
        self,
        slot: int,
        args: ChipStorageTaskArgs,
        slot_id: int,
        generation: int,
        config: CallConfig | None = None,
        run_id: int = 0,
        dispatch_id: int = 0,
    ) -> NativeRunToken:
        self._live()
        config = _config_with(config, {})
        config.validate()
        self._callable_in(slot)
        if not self._pipeline.idle():  # type: ignore[union-attr]
            raise StateError("runs submitted through handles are in flight; wait for them first")
        return self._native_runs.prepare(slot, args, slot_id, generation, config, run_id, dispatch_id)  # type: ignore[union-attr]

    def _launch_native_run(self, token: NativeRunToken) -> None:
        self._live()
        self._native_runs.launch(token)  # type: ignore[union-attr]

    def _poll_native_run(self, token: NativeRunToken) -> bool:
        self._live()
        return self._native_runs.poll(token)  # type: ignore[union-attr]

    def _wait_native_run(self, token: NativeRunToken) -> None:
        self._live()
        self._native_runs.wait(token)  # type: ignore[union-attr]

    def _finalize_native_run(self, token: NativeRunToken) -> RunTiming:
        self._live()
        return self._native_runs.finalize(token)  # type: ignore[union-attr]

    # ---- memory: plain addresses ----

    def malloc(self, size: int) -> int:
        """Device memory; its address."""
        return self._live().malloc(size)

    def free(self, ptr: int) -> None:
        self._live().free(ptr)

    def copy_to(self, dst: int, src: int, size: int) -> None:
        """Host address src to device address dst."""
        self._live().copy_to(dst, src, size)

    def copy_from(self, dst: int, src: int, size: int) -> None:
        """Device address src to host address dst."""
        self._live().copy_from(dst, src, size)

    # ---- facts ----

    @property
    def device_id(self) -> int:
        """-1 unless initialised."""
        return self._native.device_id if self._state == _READY else -1

    @property
    def pipeline_depth(self) -> int:
        """How many runs may be between prepare and finalize."""
        return self._live().pipeline_depth

    @property
    def runtime_slot_count(self) -> int:
        return self._live().pipeline_depth

    @property
    def committed_device_memory(self) -> int:
        """Bytes of live device allocations."""
        return self._live().committed_device_memory

    @property
    def aicpu_dlopen_count(self) -> int:
        """Orchestrations loaded for the device so far; never decreases."""
        return self._native.aicpu_dlopen_count if self._native is not None else 0

    @property
    def host_dlopen_count(self) -> int:
        """Orchestrations loaded in the host process so far (host_build_graph)."""
        return self._native.host_dlopen_count if self._native is not None else 0

    @property
    def run_stream_set_create_count(self) -> int:
        """Streams of the cores that were made for runs so far, on an a2a3 board; elsewhere 0."""
        return self._live().run_stream_set_create_count


def _config_with(config: CallConfig | None, overrides: dict[str, Any]) -> CallConfig:
    if config is None:
        config = CallConfig()
    elif not isinstance(config, CallConfig):
        raise ArgumentTypeError(f"config must be a CallConfig, not {type(config).__name__}")
    if overrides:
        config = copy.copy(config)
        for name, value in overrides.items():
            if not hasattr(config, name):
                raise ArgumentTypeError(f"CallConfig has no field {name!r}")
            setattr(config, name, value)
    return config


def _check_log_level(level: int | None) -> None:
    if level is not None and level not in _log.LADDER:
        raise ArgumentError(f"log_level is {level!r}; allowed: {', '.join(map(str, _log.LADDER))}")


def _target_of(bins: Any) -> tuple[str, str]:
    """(platform, runtime) that a set of runtime binaries was made for."""
    platform, runtime = getattr(bins, "platform", None), getattr(bins, "runtime", None)
    if platform and runtime:
        return platform, runtime
    path = str(getattr(bins, "host_path", ""))
    found = _PATH_OF_RUNTIME.search(path)
    if not found:
        raise ArgumentError(
            f"bins names no platform and runtime (host_path={path!r}); pass what "
            "RuntimeBuilder(platform).get_binaries(runtime) returned"
        )
    return found["arch"] + ("sim" if found["variant"] == "sim" else ""), found["runtime"]
