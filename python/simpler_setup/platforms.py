"""Names of platforms and runtimes, and what a platform name stands for."""

from __future__ import annotations

from simpler import platforms as _rows

from .errors import unknown_name

#: platform name -> (arch, variant)
PLATFORMS = {name: (row.arch, "sim" if row.simulated else "onboard") for name, row in _rows.PLATFORMS.items()}
ARCHS = tuple(dict.fromkeys(arch for arch, _ in PLATFORMS.values()))
VARIANTS = ("onboard", "sim")
TARGETS = ("host", "aicpu", "aicore")
RUNTIMES = tuple(sorted(_rows.RUNTIMES))


def parse_platform(platform: str) -> tuple[str, str]:
    """(arch, variant) of a platform name; ValueError names the supported ones."""
    try:
        return PLATFORMS[platform]
    except (KeyError, TypeError):
        raise ValueError(unknown_name("platform", platform, PLATFORMS)) from None


def to_platform(arch: str, variant: str) -> str:
    """The platform name of an arch and a variant; the inverse of parse_platform."""
    for name, pair in PLATFORMS.items():
        if pair == (arch, variant):
            return name
    if arch not in ARCHS:
        raise ValueError(unknown_name("arch", arch, ARCHS))
    raise ValueError(unknown_name("variant", variant, VARIANTS))


def is_simulator(platform: str) -> bool:
    """True for a platform that runs on this machine. ValueError for an unknown one."""
    return parse_platform(platform)[1] == "sim"


def discover_runtimes(arch: str) -> list[str]:
    """The runtimes that serve an arch, sorted."""
    if arch not in ARCHS:
        raise ValueError(unknown_name("arch", arch, ARCHS))
    return list(RUNTIMES)


def check_runtime(runtime: str) -> str:
    """`runtime` itself when it exists; ValueError names the supported ones."""
    if runtime not in RUNTIMES:
        raise ValueError(unknown_name("runtime", runtime, RUNTIMES))
    return runtime
