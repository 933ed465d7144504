"""RuntimeBuilder: where the runtime of a platform is. It is part of the installed extension, so nothing is built."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from .errors import unknown_name
from .platforms import discover_runtimes, parse_platform


@dataclass(frozen=True)
class RuntimeBinaries:
    """The files of one runtime. One library holds host, scheduler and core side, so all paths name it."""

    host_path: Path
    aicpu_path: Path
    aicore_path: Path
    sim_context_path: Path | None = None
    dispatcher_path: Path | None = None
    platform: str = ""
    runtime: str = ""


class RuntimeBuilder:
    """Finds runtimes of one platform. ValueError for an unknown platform."""

    def __init__(self, platform: str):
        self.platform = platform
        self.arch, self.variant = parse_platform(platform)

    def list_runtimes(self) -> list[str]:
        return discover_runtimes(self.arch)

    def get_binaries(
        self, name: str, build: bool = False, *, build_shared: bool = True, profiling_config: object | None = None
    ) -> RuntimeBinaries:
        """The files of a runtime. `build`, `build_shared` and `profiling_config` have nothing to act on.

        ValueError for an unknown runtime, FileNotFoundError when the extension is not installed.
        """
        del build, build_shared, profiling_config
        if name not in self.list_runtimes():
            raise ValueError(unknown_name("runtime", name, self.list_runtimes()))
        spec = find_spec("_task_interface")
        if spec is None or spec.origin is None:
            raise FileNotFoundError("the native extension _task_interface is not installed; run: pip install .")
        library = Path(spec.origin)
        return RuntimeBinaries(library, library, library, platform=self.platform, runtime=name)
