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


def builds_for_host(platform: str) -> bool:
    """Whether the host's compiler makes what runs on a platform: a simulator, or a board that is emulated."""
    return is_simulator(platform) or _rows.emulated_vendor() is not None


def counts_as(platform: str) -> str:
    """The platform whose name chooses cases and tests: an emulated board runs those of its simulator."""
    if _rows.emulated_vendor() is None or PLATFORMS.get(platform, ("", "sim"))[1] == "sim":
        return platform
    return to_platform(PLATFORMS[platform][0], "sim")


def emulation_note(platform: str) -> str | None:
    """What to tell the user when an emulated board stands in for `platform`; else None."""
    if counts_as(platform) == platform:
        return None
    return (
        f"platform {platform} is emulated by the vendor library in {_rows.emulated_vendor()}, without a board; "
        f"filters take it for {counts_as(platform)}"
    )


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
