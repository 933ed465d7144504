"""The command `simpler`: run scene files, write a new one, look at the installation, look after the cache.

Exit codes of `run` are those of a scene file; otherwise 0 is fine, 1 is not, 2 a wrong command line.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from ..compile_cache import MAX_AGE_S, MAX_BYTES, CompileCache
from ..environment import cache_dir
from ..scene.options import HelpfulParser, seconds


def build_parser() -> argparse.ArgumentParser:
    parser = HelpfulParser(prog="simpler", description="Scene tests on simulated and real chips.", allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=HelpfulParser)

    run = commands.add_parser("run", allow_abbrev=False, help="run the scenes of files or folders",
                              description="Run scenes without pytest.")  # fmt: skip
    run.add_argument("targets", nargs="+", metavar="FILE|DIR[::Class[::Case]]", help="what to run; folders recursively")
    from ..scene.standalone import add_options

    add_options(run)
    run.set_defaults(function=_run)

    new = commands.add_parser("new", help="write a scene that works, to start from")
    new.add_argument("name", help="its name, for example my_kernel")
    new.add_argument("--dir", default=".", type=Path, help="where its folder is made (default: here)")
    new.set_defaults(function=_new)

    doctor = commands.add_parser("doctor", help="what is installed, what is missing and how to get it")
    doctor.set_defaults(function=_doctor)

    cache = commands.add_parser("cache", help="show or clear what was compiled")
    cache.add_argument("action", nargs="?", choices=["show", "clear"], default="show")
    cache.add_argument("--older-than", type=seconds, metavar="SEC", help="clear only what was not used for so long")
    cache.set_defaults(function=_cache)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    chosen = build_parser().parse_args(arguments)
    return int(chosen.function(chosen))


def _run(chosen: argparse.Namespace) -> int:
    from ..scene.standalone import UsageError, run_sources
    from .targets import load

    try:
        sources, broken = load(chosen.targets)
    except UsageError as error:
        print(f"ERROR: {error}", file=sys.stderr)
        return 2
    return run_sources(sources, chosen, None, broken)


def _new(chosen: argparse.Namespace) -> int:
    from .new_scene import write

    return write(chosen.name, chosen.dir)


def _doctor(chosen: argparse.Namespace) -> int:
    from .doctor import examine

    del chosen
    return examine()


def _cache(chosen: argparse.Namespace) -> int:
    cache = CompileCache()
    if chosen.action == "clear":
        before = cache.usage()
        everything = chosen.older_than is None
        removed = cache.prune(max_bytes=0) if everything else cache.prune(max_age_s=chosen.older_than)
        freed = before.size_bytes - cache.usage().size_bytes
        print(f"removed {removed} files, {freed / 1e6:.1f} MB, from {cache.root}")
        return 0
    if chosen.older_than is not None:
        print("ERROR: --older-than goes with: simpler cache clear", file=sys.stderr)
        return 2
    usage = cache.usage()
    print(f"folder    {cache_dir()}  (SIMPLER_CACHE_DIR changes it)")
    print(f"compiled  {usage.objects} objects, {usage.size_bytes / 1e6:.1f} MB of at most {MAX_BYTES / 1e6:.0f} MB")
    if usage.oldest is not None:
        days = (time.time() - usage.oldest) / 86400.0
        print(f"oldest    used {days:.1f} days ago; what is not used for {MAX_AGE_S / 86400:.0f} days goes by itself")
    print("clear it with: simpler cache clear")
    return 0
