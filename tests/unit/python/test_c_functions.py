"""The C functions: headers, library and documentation name the same ones."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path

import simpler_setup

ROOT = Path(__file__).resolve().parents[3]
HEADERS = [ROOT / "include/host" / name for name in ("simpler_host.h", "simpler_comm.h")]
# What programs for older versions of the library look up by name.
OLDER_NAMES = """
    create_device_context destroy_device_context get_runtime_size get_runtime_alignment get_pipeline_contract
    supports_concurrent_native_prepare_ctx device_malloc_ctx device_free_ctx committed_device_memory_ctx
    copy_to_device_ctx copy_from_device_ctx simpler_init finalize_device simpler_register_callable
    simpler_unregister_callable simpler_prepare_run simpler_launch_run simpler_poll_run simpler_wait_run
    simpler_finalize_run simpler_run get_arena_bank_gm_heap_base_ctx get_retained_temp_addr_ctx get_aicpu_dlopen_count
    get_host_dlopen_count get_run_stream_set_create_count simpler_provision_dma_workspace ensure_acl_ready_ctx
    create_comm_stream_ctx destroy_comm_stream_ctx comm_init comm_alloc_windows comm_get_local_window_base
    comm_get_window_size comm_derive_context comm_alloc_domain_windows comm_release_domain_windows
    comm_global_domain_prepare comm_global_domain_import comm_global_domain_release comm_barrier comm_destroy
    comm_dma_workspace_supported_mask comm_dma_workspace_provision comm_dma_workspace_release
    simpler_host_log_bind_state
""".split()


def declared() -> set[str]:
    text = "".join(header.read_text() for header in HEADERS)
    return set(re.findall(r"^SIMPLER_API [^;(]*?(\w+)\(", text, re.MULTILINE))


def test_every_older_name_is_declared():
    assert set(OLDER_NAMES) - declared() == set()


def test_the_library_exports_what_the_headers_declare():
    library = Path(simpler_setup.__file__).parent / "_assets/lib/libsimpler_host.so"
    loaded = ctypes.CDLL(str(library))
    assert [name for name in sorted(declared()) if not hasattr(loaded, name)] == []


def test_the_documentation_lists_every_function():
    page = (ROOT / "docs/device-runner.md").read_text()
    listed = re.findall(r"`(\w+)`", page[page.index("## In C") : page.index("## Log")])
    assert declared() - set(listed) == set()


def test_a_c_program_uses_every_function():
    programs = "".join(path.read_text() for path in (ROOT / "tests/c").glob("*.c"))
    assert [name for name in sorted(declared()) if not re.search(rf"\b{name}\(", programs)] == []
