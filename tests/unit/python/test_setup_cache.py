"""The compile cache: what is a hit, what is a miss, and what happens when the disk does not help."""

import hashlib
import logging
import multiprocessing
import os
import time

import pytest
from simpler_setup import compile_cache
from simpler_setup.compile_cache import CompileCache, Product, Request


class Project:
    """A source with one header, and a "compiler" that concatenates them and counts its runs."""

    def __init__(self, folder):
        self.folder = folder
        self.early, self.late = folder / "early", folder / "late"
        self.early.mkdir()
        self.late.mkdir()
        self.source, self.header = folder / "kernel.cpp", self.late / "kit.h"
        self.source.write_text("source")
        self.header.write_text("header")
        self.cache = CompileCache(folder / "cache")
        self.runs = 0

    def request(self, flags=("-O2",)):
        return Request(self.source, ("cxx", *flags), (str(self.early), str(self.late)), "compiler 1")

    def build(self, flags=("-O2",), cache=None):
        def compile_it():
            self.runs += 1
            early = self.early / "kit.h"
            header = early if early.exists() else self.header
            return Product((self.source.read_text() + header.read_text() + " ".join(flags)).encode(), [str(header)])

        return (cache or self.cache).get_or_build(self.request(flags), compile_it).decode()


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path)


def test_a_second_build_compiles_nothing(project):
    assert [project.build(), project.build()] == ["sourceheader-O2"] * 2
    assert project.build(cache=CompileCache(project.folder / "cache")) == "sourceheader-O2"
    assert project.runs == 1 and (project.cache.counters.hits, project.cache.counters.compiles) == (1, 1)


def test_each_input_matters(project):
    project.build()
    project.build(flags=("-O0",))
    project.source.write_text("other source")
    assert project.build().startswith("other source") and project.runs == 3
    request = project.request()
    other = Request(request.source, request.command, request.include_dirs, "compiler 2")
    assert project.cache.get_or_build(other, lambda: Product(b"new")) == b"new"


def test_a_changed_header_is_noticed_and_an_old_one_found_again(project):
    project.build()
    project.header.write_text("HEADER")
    assert project.build() == "sourceHEADER-O2" and project.runs == 2
    project.header.write_text("header")
    assert project.build() == "sourceheader-O2" and project.runs == 2


def test_a_header_that_appears_earlier_in_the_path_is_noticed(project):
    project.build()
    (project.early / "kit.h").write_text("EARLY")
    assert project.build() == "sourceEARLY-O2" and project.runs == 2


def test_a_header_that_vanishes_is_a_miss(project):
    project.build()
    project.header.unlink()
    (project.early / "kit.h").write_text("EARLY")
    assert project.build() == "sourceEARLY-O2"


def test_the_compilers_environment_matters(project, monkeypatch):
    project.build()
    monkeypatch.setenv("CPLUS_INCLUDE_PATH", "/elsewhere")
    project.build()
    assert project.runs == 2


@pytest.mark.parametrize("damage", [b"", b"garbage"])
def test_a_damaged_object_is_compiled_again(project, damage):
    digest = hashlib.sha256(project.build().encode()).hexdigest()
    (project.cache.root / "objects" / digest).write_bytes(damage)
    assert project.build() == "sourceheader-O2" and project.runs == 2
    assert project.build() == "sourceheader-O2" and project.runs == 2


@pytest.mark.parametrize("damage", ["", "[]", '{"variants": 3}', '{"variants": [{"deps": 1}]}', '{"variants": [7]}'])
def test_a_damaged_manifest_is_a_miss(project, damage):
    project.build()
    for manifest in (project.cache.root / "manifests").iterdir():
        manifest.write_text(damage)
    assert project.build() == "sourceheader-O2" and project.runs == 2


def test_an_unusable_folder_costs_one_warning_only(project, caplog):
    blocked = project.folder / "file"
    blocked.write_text("not a folder")
    cache = CompileCache(blocked / "cache")
    with caplog.at_level(logging.WARNING, logger="simpler"):
        assert [project.build(cache=cache), project.build(cache=cache)] == ["sourceheader-O2"] * 2
    assert project.runs == 2 and caplog.text.count("cannot be used") == 1 and "SIMPLER_CACHE_DIR" in caplog.text


def test_a_failing_compile_stores_nothing_and_frees_the_lock(project):
    def fail():
        raise RuntimeError("no")

    for _ in range(2):
        with pytest.raises(RuntimeError, match="no"):
            project.cache.get_or_build(project.request(), fail)
    assert project.build() == "sourceheader-O2"


def test_only_a_few_header_states_are_remembered(project):
    for state in range(compile_cache._VARIANTS + 3):
        project.header.write_text(f"state {state}")
        project.build()
    (manifest,) = (project.cache.root / "manifests").iterdir()
    assert manifest.read_text().count("artifact") == compile_cache._VARIANTS


def test_pruning_drops_what_is_old_then_what_is_too_much(project):
    for state in range(4):
        project.header.write_text(f"state {state}")
        project.build()
    objects = sorted((project.cache.root / "objects").iterdir(), key=lambda p: p.stat().st_mtime_ns)
    long_ago = time.time() - 20 * 86400
    os.utime(objects[0], (long_ago, long_ago))
    assert project.cache.prune() == 1 and not objects[0].exists()
    keep = max(p.stat().st_size for p in (project.cache.root / "manifests").iterdir()) + objects[-1].stat().st_size
    project.cache.prune(max_bytes=keep)
    assert sum(p.stat().st_size for f in ("objects", "manifests") for p in (project.cache.root / f).iterdir()) <= keep


def test_a_hit_renews_the_time_stamp(project):
    digest = hashlib.sha256(project.build().encode()).hexdigest()
    path = project.cache.root / "objects" / digest
    long_ago = time.time() - 10 * 86400
    os.utime(path, (long_ago, long_ago))
    project.build()
    assert time.time() - path.stat().st_mtime < 3600


def _build_in_child(folder, barrier, log):
    source = folder / "kernel.cpp"
    request = Request(source, ("cxx",), (), "compiler")

    def compile_it():
        with open(log, "a") as file:
            file.write("x")
        time.sleep(0.1)
        return Product(b"result", [])

    barrier.wait()
    assert CompileCache(folder / "cache").get_or_build(request, compile_it) == b"result"


def test_of_many_processes_one_compiles(tmp_path):
    (tmp_path / "kernel.cpp").write_text("source")
    context = multiprocessing.get_context("fork")
    barrier, log = context.Barrier(4), tmp_path / "log"
    children = [context.Process(target=_build_in_child, args=(tmp_path, barrier, log)) for _ in range(4)]
    for child in children:
        child.start()
    for child in children:
        child.join(30)
    assert [child.exitcode for child in children] == [0] * 4 and log.read_text() == "x"
