/* A program in C that uses the device runner: host_program CALLABLE ARGUMENTS. The files hold a ChipCallable and a
 * ChipStorageTaskArgs, whose first tensor is four 32-bit integers of this program and whose scalar is added to them. Checks
 * every rule of host/simpler_host.h that a caller can break; exit code 0: all held. */
#include "host/simpler_host.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"

static void* read_file(const char* path, size_t* bytes) {
  FILE* file = fopen(path, "rb");
  void* data;
  if (file == NULL) exit(2);
  fseek(file, 0, SEEK_END);
  *bytes = (size_t)ftell(file);
  rewind(file);
  data = aligned_alloc(64, (*bytes + 63) / 64 * 64);
  if (data == NULL || fread(data, 1, *bytes, file) != *bytes) exit(2);
  fclose(file);
  return data;
}

static void* zeroed_storage(void) {
  const size_t alignment = get_runtime_alignment(), size = (get_runtime_size() + alignment - 1) / alignment * alignment;
  void* storage = aligned_alloc(alignment, size);
  memset(storage, 0, size);
  return storage;
}

static void null_contexts(void) {
  char byte = 0;
  EXPECT(simpler_init(NULL, 0, NULL, 0, NULL, 0, NULL, 0, NULL) == -1);
  EXPECT(finalize_device(NULL) == -1);
  EXPECT(device_malloc_ctx(NULL, 8) == NULL);
  device_free_ctx(NULL, &byte);
  EXPECT(committed_device_memory_ctx(NULL) == 0);
  EXPECT(copy_to_device_ctx(NULL, &byte, &byte, 1) == -1);
  EXPECT(copy_from_device_ctx(NULL, &byte, &byte, 1) == -1);
  EXPECT(simpler_register_callable(NULL, 0, &byte) == -1);
  EXPECT(simpler_unregister_callable(NULL, 0) == -1);
  EXPECT(simpler_prepare_run(NULL, &byte, 0, &byte, NULL, NULL) == -1);
  EXPECT(simpler_launch_run(NULL, &byte) == -1);
  EXPECT(simpler_poll_run(NULL, &byte) == SIMPLER_POLL_ERROR);
  EXPECT(simpler_wait_run(NULL, &byte) == -1);
  EXPECT(simpler_finalize_run(NULL, &byte) == -1);
  EXPECT(simpler_run(NULL, &byte, 0, &byte, NULL, NULL) == -1);
  EXPECT(supports_concurrent_native_prepare_ctx(NULL) == 0);
  EXPECT(get_arena_bank_gm_heap_base_ctx(NULL, 0) == 0);
  EXPECT(get_retained_temp_addr_ctx(NULL, 0) == 0);
  EXPECT(get_aicpu_dlopen_count(NULL) == 0);
  EXPECT(get_host_dlopen_count(NULL) == 0);
  EXPECT(simpler_provision_dma_workspace(NULL, 0) == -1);
  EXPECT(simpler_last_error_code() == -1 && simpler_last_error_kind() == SIMPLER_ERROR_VALUE);
  EXPECT(simpler_set_simulator_ctx(NULL, 1, 1) == -1);
  EXPECT(simpler_end_device(NULL) == -1);
  EXPECT(simpler_prewarm_ctx(NULL, &byte) == -1);
  EXPECT(simpler_free_ctx(NULL, &byte) == -1);
  EXPECT(simpler_add_callable(NULL, 0, &byte, 1) == -1);
  EXPECT(simpler_remove_callable(NULL, 0) == -1);
  EXPECT(simpler_wait_idle_ctx(NULL, 0) == -1);
  EXPECT(simpler_wait_run_for(NULL, &byte, 0, NULL) == -1);
  EXPECT(simpler_finalize_run_timed(NULL, &byte, NULL) == -1);
  EXPECT(simpler_run_epoch(NULL) == 0);
  EXPECT(simpler_cluster_count_ctx(NULL) == 0 && simpler_thread_count_ctx(NULL) == 0);
  EXPECT(get_run_stream_set_create_count(NULL) == 0);
  destroy_device_context(NULL);
}

static void contexts_before_their_device(void) {
  void* context = create_device_context();
  EXPECT(context != NULL);
  EXPECT(device_malloc_ctx(context, 8) == NULL);
  EXPECT(strstr(simpler_last_error(), "simpler_init") != NULL);
  EXPECT(simpler_last_error_kind() == SIMPLER_ERROR_STATE);
  EXPECT(simpler_end_device(context) == 0);
  EXPECT(finalize_device(context) == -1);
  EXPECT(simpler_init(context, -1, NULL, 0, NULL, 0, NULL, 0, NULL) == -1);
  destroy_device_context(context);
  context = simpler_create_device_context("a4sim", "tensormap_and_ringbuffer");
  EXPECT(simpler_init(context, 0, NULL, 0, NULL, 0, NULL, 0, NULL) == -1);
  EXPECT(strstr(simpler_last_error(), "a4sim") != NULL);
  destroy_device_context(context);
}

static void contracts(void) {
  const SimplerPipelineContract* contract = get_pipeline_contract();
  void* whole = simpler_create_device_context("a5sim", "host_build_graph");
  uint32_t i;
  EXPECT(contract->abi_version == SIMPLER_PIPELINE_ABI && contract->depth == 2);
  EXPECT(contract->resource_count == 6);
  for (i = 0; i < contract->resource_count; ++i) EXPECT(contract->resources[i].kind == i + 1);
  EXPECT(contract->resources[0].resource_class == SIMPLER_RESOURCE_DEVICE_SCRATCH);
  EXPECT(get_pipeline_contract_ctx(whole)->resources[0].resource_class == SIMPLER_RESOURCE_HOST_PER_RUN);
  EXPECT(get_pipeline_contract_ctx(NULL) == NULL);
  destroy_device_context(whole);
}

static void log_states(void) {
  static SimplerHostLogState state = {1, sizeof(SimplerHostLogState), 40, 0};
  SimplerHostLogState bad = state;
  EXPECT(simpler_host_log_bind_state(NULL) == -1);
  bad.abi_version = 2;
  EXPECT(simpler_host_log_bind_state(&bad) == -1);
  bad = state;
  bad.size = 8;
  EXPECT(simpler_host_log_bind_state(&bad) == -1);
  bad = state;
  bad.threshold = 35;
  EXPECT(simpler_host_log_bind_state(&bad) == -1);
  EXPECT(simpler_host_log_bind_state(&state) == 0);
}

struct Work {
  void *context, *storage;
  const void *callable, *args;
  int32_t* data;
  size_t callable_bytes;
};

static void memory_is_checked(const struct Work* w) {
  const size_t before = committed_device_memory_ctx(w->context);
  char out[64] = "device memory", in[64] = "";
  void* block = device_malloc_ctx(w->context, 64);
  EXPECT(block != NULL && committed_device_memory_ctx(w->context) == before + 64);
  EXPECT(copy_to_device_ctx(w->context, block, out, 64) == 0);
  EXPECT(copy_from_device_ctx(w->context, in, block, 64) == 0 && strcmp(in, out) == 0);
  EXPECT(copy_to_device_ctx(w->context, block, NULL, 1) == -1);
  EXPECT(copy_to_device_ctx(w->context, NULL, out, 1) == -1);
  EXPECT(copy_from_device_ctx(w->context, NULL, block, 1) == -1);
  EXPECT(copy_to_device_ctx(w->context, block, out, 65) != 0);
  EXPECT(simpler_last_error_kind() == SIMPLER_ERROR_VALUE);
  EXPECT(simpler_free_ctx(w->context, out) == -1 && simpler_last_error_kind() == SIMPLER_ERROR_VALUE);
  device_free_ctx(w->context, out); /* was not allocated */
  device_free_ctx(w->context, NULL);
  EXPECT(simpler_free_ctx(w->context, block) == 0);
  device_free_ctx(w->context, block);
  EXPECT(committed_device_memory_ctx(w->context) == before);
}

static void runs_go_through_their_phases(const struct Work* w) {
  int32_t accepted = 0;
  SimplerRunDescriptor where = {0, 0, 7, 1, 9, 0, NULL, 5};
  void *other = create_device_context(), *second = zeroed_storage();
  int polled;
  where.accepted_state = &accepted;
  w->data[0] = 1;
  EXPECT(simpler_launch_run(w->context, w->storage) == -1);                          /* nothing is prepared */
  EXPECT(simpler_prepare_run(w->context, w->storage, 3, w->args, NULL, NULL) == -1); /* no such callable */
  EXPECT(simpler_prepare_run(w->context, (char*)w->storage + 8, 0, w->args, NULL, NULL) == -1);
  EXPECT(simpler_prepare_run(w->context, NULL, 0, w->args, NULL, NULL) == -1);
  EXPECT(simpler_prepare_run(w->context, w->storage, 0, NULL, NULL, NULL) == -1);
  where.pipeline_slot = 2;
  EXPECT(simpler_prepare_run(w->context, w->storage, 0, w->args, NULL, &where) == -1);
  where.pipeline_slot = 0;
  where.arena_bank = 2;
  EXPECT(simpler_prepare_run(w->context, w->storage, 0, w->args, NULL, &where) == -1);
  where.arena_bank = 0;
  *(uint64_t*)w->storage = 1;
  EXPECT(simpler_prepare_run(w->context, w->storage, 0, w->args, NULL, &where) == -1); /* not zeroed */
  *(uint64_t*)w->storage = 0;

  EXPECT(simpler_prepare_run(w->context, w->storage, 0, w->args, NULL, &where) == 0);
  EXPECT(simpler_prepare_run(w->context, w->storage, 0, w->args, NULL, &where) == -1); /* in use */
  EXPECT(simpler_poll_run(w->context, w->storage) == SIMPLER_POLL_ERROR);
  EXPECT(simpler_wait_run(w->context, w->storage) == -1);
  EXPECT(simpler_launch_run(other, w->storage) == -1);
  EXPECT(finalize_device(w->context) == -1);
  EXPECT(simpler_register_callable(w->context, 1, w->callable) == -1);
  EXPECT(simpler_unregister_callable(w->context, 0) == -1);
  destroy_device_context(w->context);                                            /* refused: the context lives on */
  EXPECT(simpler_prepare_run(w->context, second, 0, w->args, NULL, NULL) == -1); /* the first one is not launched */
  EXPECT(accepted == 0);
  EXPECT(simpler_launch_run(w->context, w->storage) == 0);
  EXPECT(accepted == 5);
  EXPECT(simpler_launch_run(w->context, w->storage) == -1);
  where.pipeline_slot = 1;
  where.accepted_state = NULL;
  EXPECT(simpler_prepare_run(w->context, second, 0, w->args, NULL, &where) == 0);
  EXPECT(simpler_launch_run(w->context, second) == -1); /* the first one owns the device */
  polled = simpler_poll_run(w->context, w->storage);
  EXPECT(polled == SIMPLER_POLL_NOT_READY || polled == SIMPLER_POLL_COMPLETE);
  EXPECT(simpler_wait_run(w->context, w->storage) == 0);
  EXPECT(simpler_poll_run(w->context, w->storage) == SIMPLER_POLL_COMPLETE);
  EXPECT(w->data[0] == 1); /* results come with finalization */
  EXPECT(simpler_finalize_run(w->context, w->storage) == 0);
  EXPECT(w->data[0] == 11);
  EXPECT(simpler_finalize_run(w->context, w->storage) == -1);
  EXPECT(simpler_finalize_run(w->context, second) == 0); /* never launched: given back */
  EXPECT(w->data[0] == 11);
  EXPECT(get_arena_bank_gm_heap_base_ctx(w->context, 0) != 0 && get_arena_bank_gm_heap_base_ctx(w->context, 2) == 0);
  EXPECT(get_retained_temp_addr_ctx(w->context, 0) != 0 && get_retained_temp_addr_ctx(w->context, 2) == 0);
  EXPECT(simpler_run(w->context, w->storage, 0, w->args, NULL, NULL) == 0); /* the storage serves again as it is */
  EXPECT(w->data[0] == 21);
  EXPECT(simpler_run(w->context, w->storage, 5, w->args, NULL, NULL) == -1);
  free(second);
  destroy_device_context(other);
}

static void runs_are_waited_for(const struct Work* w) {
  SimplerRunDescriptor anywhere = {SIMPLER_ANY_SLOT, 0, 0, 1, 0, 0, NULL, 0};
  SimplerRunTiming timing = {0, 0};
  int ended = 0;
  uint64_t epoch;
  w->data[0] = 1;
  EXPECT(simpler_wait_idle_ctx(w->context, 0) == SIMPLER_POLL_COMPLETE);
  EXPECT(simpler_run_epoch(w->storage) == 0);
  anywhere.pipeline_slot = -2;
  EXPECT(simpler_prepare_run(w->context, w->storage, 0, w->args, NULL, &anywhere) == -1);
  anywhere.pipeline_slot = SIMPLER_ANY_SLOT;
  EXPECT(simpler_prepare_run(w->context, w->storage, 0, w->args, NULL, &anywhere) == 0);
  epoch = simpler_run_epoch(w->storage);
  EXPECT(epoch != 0);
  EXPECT(simpler_wait_run_for(w->context, w->storage, 0, &ended) == -1); /* not launched */
  EXPECT(simpler_launch_run(w->context, w->storage) == 0);
  EXPECT(simpler_wait_run_for(w->context, w->storage, -1, NULL) == -1);
  EXPECT(simpler_wait_run_for(w->context, w->storage, -1, &ended) == 0 && ended == 1);
  EXPECT(simpler_wait_idle_ctx(w->context, -1) == SIMPLER_POLL_COMPLETE);
  /* beside a run that is not finalized */
  EXPECT(simpler_add_callable(w->context, 7, w->callable, 16) == -1);
  EXPECT(simpler_last_error_kind() == SIMPLER_ERROR_VALUE);
  EXPECT(simpler_add_callable(w->context, 7, NULL, w->callable_bytes) == -1);
  EXPECT(simpler_add_callable(w->context, 7, w->callable, w->callable_bytes) == 0);
  EXPECT(simpler_remove_callable(w->context, 7) == 0);
  EXPECT(simpler_remove_callable(w->context, 7) == -1 && simpler_last_error_kind() == SIMPLER_ERROR_KEY);
  EXPECT(simpler_remove_callable(w->context, 64) == -1 && simpler_last_error_kind() == SIMPLER_ERROR_INDEX);
  EXPECT(simpler_finalize_run_timed(w->context, w->storage, &timing) == 0);
  EXPECT(timing.host_wall_ns > 0 && timing.device_wall_ns > 0 && timing.host_wall_ns > timing.device_wall_ns);
  EXPECT(simpler_run_epoch(w->storage) == 0);
  EXPECT(simpler_prepare_run(w->context, w->storage, 0, w->args, NULL, &anywhere) == 0);
  EXPECT(simpler_run_epoch(w->storage) > epoch);
  EXPECT(simpler_finalize_run(w->context, w->storage) == 0);
}

/* Phases may come from different threads. */
static void* launch_and_finalize(void* work) {
  const struct Work* w = work;
  EXPECT(simpler_launch_run(w->context, w->storage) == 0);
  EXPECT(simpler_finalize_run(w->context, w->storage) == 0);
  return NULL;
}

int main(int count, char** names) {
  struct Work w;
  size_t args_bytes;
  int32_t data[4] = {1, 2, 3, 4};
  pthread_t thread;
  int round;
  if (count != 3) return 2;
  w.callable = read_file(names[1], &w.callable_bytes);
  w.args = read_file(names[2], &args_bytes);
  *(uint64_t*)w.args = (uint64_t)(uintptr_t)data; /* a tensor begins with the address of its buffer */
  w.data = data;
  w.storage = zeroed_storage();
  log_states();
  null_contexts();
  contexts_before_their_device();
  contracts();
  w.context = simpler_create_device_context("a2a3sim", "tensormap_and_ringbuffer");
  for (round = 0; round < 3; ++round) { /* a finalized context may be initialised again */
    EXPECT(simpler_set_simulator_ctx(w.context, 3, 2) == 0);
    EXPECT(simpler_init(w.context, 0, NULL, 0, NULL, 0, NULL, 0, NULL) == 0);
    EXPECT(simpler_init(w.context, 0, NULL, 0, NULL, 0, NULL, 0, NULL) == -1);
    EXPECT(simpler_set_simulator_ctx(w.context, 0, 0) == -1);
    EXPECT(simpler_cluster_count_ctx(w.context) == 3 && simpler_thread_count_ctx(w.context) == 2);
    EXPECT(simpler_prewarm_ctx(w.context, NULL) == -1);
    EXPECT(simpler_provision_dma_workspace(w.context, 0) == 0 && simpler_provision_dma_workspace(w.context, 1) == -1);
    EXPECT(simpler_register_callable(w.context, 64, w.callable) == -1);
    EXPECT(simpler_register_callable(w.context, 0, NULL) == -1);
    EXPECT(simpler_register_callable(w.context, 0, w.callable) == 0);
    EXPECT(simpler_register_callable(w.context, 0, w.callable) == -1);
    EXPECT(get_aicpu_dlopen_count(w.context) == 1 && get_host_dlopen_count(w.context) == 0);
    memory_is_checked(&w);
    runs_go_through_their_phases(&w);
    runs_are_waited_for(&w);
    data[0] = 1;
    EXPECT(simpler_prepare_run(w.context, w.storage, 0, w.args, NULL, NULL) == 0);
    pthread_create(&thread, NULL, launch_and_finalize, &w);
    pthread_join(thread, NULL);
    EXPECT(data[0] == 11);
    EXPECT(simpler_unregister_callable(w.context, 0) == 0);
    EXPECT(simpler_unregister_callable(w.context, 0) == 0);
    EXPECT(get_run_stream_set_create_count(w.context) == 0);
    if (round < 2) {
      EXPECT(finalize_device(w.context) == 0);
      EXPECT(finalize_device(w.context) == -1);
      EXPECT(strstr(simpler_last_error(), "finalized") != NULL);
    } else { /* a run that nobody finalizes */
      EXPECT(simpler_register_callable(w.context, 0, w.callable) == 0);
      EXPECT(simpler_prepare_run(w.context, w.storage, 0, w.args, NULL, NULL) == 0);
      EXPECT(simpler_launch_run(w.context, w.storage) == 0);
      EXPECT(simpler_end_device(w.context) == 0);
      EXPECT(simpler_finalize_run(w.context, w.storage) == -1);
    }
    EXPECT(get_aicpu_dlopen_count(w.context) == 0);
  }
  destroy_device_context(w.context);
  free(w.storage);
  free((void*)w.callable);
  free((void*)w.args);
  if (failures == 0) printf("every rule held\n");
  return failures == 0 ? 0 : 1;
}
