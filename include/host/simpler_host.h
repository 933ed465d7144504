/* simpler_host.h: the host side of simpler as C functions, of the shared library simpler_host.
 *
 * What      A context owns one device: memory, callables, runs. Life: create, simpler_init, use, finalize_device, destroy.
 *           After finalize_device a context may be initialised again.
 * Results   0 is success. Negative: the runtime refuses, or a run failed (minus the code of its failure). Positive: a code
 *           of the device's driver, passed on unchanged. Nothing throws. simpler_last_error() has the text,
 *           simpler_last_error_kind() what sort of failure it was.
 * Null      A null context answers -1, or NULL or 0 where an address or a count is returned.
 * Fork      A forked child does not have its parent's contexts: they answer -1 there, and destroying them does nothing.
 * Threads   A context has one owner at a time, but its calls may come from different threads: each call makes the device
 *           the calling thread's. Phases of one run are serialised by the caller; simpler_poll_run may be called beside
 *           simpler_wait_run of another thread.
 * Storage   A run lives in memory of the caller: get_runtime_size() bytes on get_runtime_alignment(), zeroed before its
 *           first use, at one address from prepare to finalize. Afterwards it may be used again as it is.
 * Lifetime  What a run's arguments name in host memory stays valid until simpler_finalize_run, which writes results there.
 *           Configuration and descriptor are copied; accepted_state is written to until simpler_launch_run returns.
 */
#ifndef SIMPLER_HOST_H
#define SIMPLER_HOST_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SIMPLER_API __attribute__((visibility("default")))

#define SIMPLER_ERR_UNSUPPORTED (-2)
#define SIMPLER_ERR_PREPARED_INCOMPATIBLE (-3) /* prepare again when the run that executes is finalized */

/* The older names of both. */
#define PTO_RUNTIME_ERR_UNSUPPORTED SIMPLER_ERR_UNSUPPORTED
#define PTO_RUNTIME_ERR_PREPARED_INCOMPATIBLE SIMPLER_ERR_PREPARED_INCOMPATIBLE

#define SIMPLER_POLL_ERROR (-1)
#define SIMPLER_POLL_NOT_READY 0
#define SIMPLER_POLL_COMPLETE 1

#define SIMPLER_PIPELINE_ABI 1
#define SIMPLER_PIPELINE_MAX_RESOURCES 8
#define SIMPLER_PIPELINE_MAX_DEPTH 2
#define SIMPLER_MAX_CALLABLES 64

/* Sorts of failures. Those of a run have a code of their own, the others -1 or a code of the driver. */
enum {
  SIMPLER_ERROR_RUN = 0,
  SIMPLER_ERROR_VALUE = 1, /* an argument is not allowed */
  SIMPLER_ERROR_TYPE = 2,
  SIMPLER_ERROR_INDEX = 3,
  SIMPLER_ERROR_KEY = 4,   /* nothing has that name */
  SIMPLER_ERROR_STATE = 5, /* not now */
  SIMPLER_ERROR_TIMEOUT = 6,
  SIMPLER_ERROR_DEVICE = 7, /* the device or its driver refused */
  SIMPLER_ERROR_MEMORY = 8
};

/* Kinds of resources that a run needs, and how many of each there are. */
enum {
  SIMPLER_RESOURCE_GM_HEAP = 1,
  SIMPLER_RESOURCE_GM_SM = 2,
  SIMPLER_RESOURCE_RUNTIME_IMAGE = 3,
  SIMPLER_RESOURCE_TASK_ARGS = 4,
  SIMPLER_RESOURCE_AICPU_STREAM = 5,
  SIMPLER_RESOURCE_AICORE_STREAM = 6
};
enum {
  SIMPLER_RESOURCE_HOST_PER_RUN = 0,   /* one for each pipeline slot */
  SIMPLER_RESOURCE_DEVICE_SCRATCH = 1, /* one, which runs use in turn */
  SIMPLER_RESOURCE_EXEC_HANDLE = 2
};
typedef struct {
  uint32_t kind;
  uint32_t resource_class;
  uint64_t bytes; /* 0: not fixed */
} SimplerPipelineResource;
typedef struct {
  uint32_t abi_version;
  uint32_t resource_count;
  uint32_t depth;
  uint32_t reserved;
  SimplerPipelineResource resources[SIMPLER_PIPELINE_MAX_RESOURCES];
} SimplerPipelineContract;

#define SIMPLER_ANY_SLOT (-1)

/* Where a run goes and what it is called; zeros, but for slot and bank, say nothing. */
typedef struct {
  int32_t pipeline_slot; /* 0, 1 or SIMPLER_ANY_SLOT: a free one */
  int32_t arena_bank;    /* 0 or 1: as the contract says, 0 if the arenas are scratch, else the slot */
  uint64_t run_id;
  uint64_t generation;
  uint64_t dispatch_id;
  uint64_t run_epoch;
  int32_t* accepted_state; /* may be NULL; gets accepted_value, released, when the device has the launch */
  int32_t accepted_value;
} SimplerRunDescriptor;

/* Durations of a finished run, in nanoseconds. */
typedef struct {
  uint64_t host_wall_ns;   /* prepare to finalize, as the caller sees it */
  uint64_t device_wall_ns; /* orchestration entry to the last task */
} SimplerRunTiming;

/* Wire structs, made by simpler's Python side or by the C++ headers: a ChipCallable, a ChipStorageTaskArgs, a CallConfig. */
typedef void SimplerChipCallable;
typedef void SimplerTaskArgs;
typedef void SimplerCallConfig;

/* The state of the logger that all libraries of a process share; it outlives them. threshold: 10, 20, 25, 30, 40 or 60. */
typedef struct {
  uint32_t abi_version; /* 1 */
  uint32_t size;        /* of this struct */
  int32_t threshold;
  int32_t clock_anchor_pid; /* 0 */
} SimplerHostLogState;

/* ---- contexts ---- */

/* The second form is for tensormap_and_ringbuffer on the simulated a2a3. Names are checked by simpler_init. */
SIMPLER_API void* simpler_create_device_context(const char* platform, const char* runtime);
SIMPLER_API void* create_device_context(void);
/* With a run between prepare and finalize it does nothing but say so: the context lives on. */
SIMPLER_API void destroy_device_context(void* context);
/* Before simpler_init, for a simulated device: how many clusters it models, and how many threads of the host run its
 * kernels. 0: SIMPLER_SIM_CLUSTERS and SIMPLER_SIM_THREADS, else 8 clusters and the CPUs of the process. */
SIMPLER_API int simpler_set_simulator_ctx(void* context, int clusters, int threads);
/* The programs may be NULL on a simulated device, which has its own. `prewarm`, if not NULL, reserves the memory that runs
 * of that configuration need. -1 if the context is initialised already. */
SIMPLER_API int simpler_init(void* context, int device, const void* aicpu, size_t aicpu_bytes, const void* aicore,
                             size_t aicore_bytes, const void* dispatcher, size_t dispatcher_bytes,
                             const SimplerCallConfig* prewarm);
/* -1, and nothing happens, while a run is between prepare and finalize. A device that could not be reset is told. */
SIMPLER_API int finalize_device(void* context);
/* The same, but ends runs that are between prepare and finalize, after waiting up to 10 s for each that was launched.
 * 0 for a context that is not initialised, and in a forked child. Calls of other threads that are under way answer -1. */
SIMPLER_API int simpler_end_device(void* context);
/* Reserves the memory that runs of that configuration need, as simpler_init does. -1 between prepare and finalize. */
SIMPLER_API int simpler_prewarm_ctx(void* context, const SimplerCallConfig* config);

/* ---- failures: of the calling thread's last call that failed; the text is valid until its next one ---- */

SIMPLER_API const char* simpler_last_error(void);
SIMPLER_API int simpler_last_error_code(void); /* what it answered, or would have if it returned a code; 0: none yet */
SIMPLER_API int simpler_last_error_kind(void); /* SIMPLER_ERROR_... */

/* ---- memory: device addresses ---- */

SIMPLER_API void* device_malloc_ctx(void* context, size_t bytes);
SIMPLER_API void device_free_ctx(void* context, void* address); /* silent for NULL and what is not allocated */
SIMPLER_API int simpler_free_ctx(void* context, void* address); /* -1 for NULL and what is not allocated */
SIMPLER_API size_t committed_device_memory_ctx(void* context);  /* as requested, the runtime's own included */
SIMPLER_API int copy_to_device_ctx(void* context, void* device, const void* host, size_t bytes);
SIMPLER_API int copy_from_device_ctx(void* context, void* host, const void* device, size_t bytes);

/* ---- callables: ids 0 to 63 ---- */

/* -1 while a run is between prepare and finalize, for a taken id, and for code that does not load. */
SIMPLER_API int simpler_register_callable(void* context, int32_t id, const SimplerChipCallable* callable);
SIMPLER_API int simpler_unregister_callable(void* context, int32_t id); /* 0 for an id that is not registered */
/* The same beside runs: these wait until none executes. `bytes`: of the callable, checked against what it says of itself;
 * -1 for an id that is not registered, or that a prepared run uses. */
SIMPLER_API int simpler_add_callable(void* context, int32_t id, const SimplerChipCallable* callable, size_t bytes);
SIMPLER_API int simpler_remove_callable(void* context, int32_t id);
/* SIMPLER_POLL_COMPLETE if no run executes, or stopped to within the limit, else SIMPLER_POLL_NOT_READY. */
SIMPLER_API int simpler_wait_idle_ctx(void* context, int64_t timeout_ns);

/* ---- runs ---- */

SIMPLER_API size_t get_runtime_size(void);
SIMPLER_API size_t get_runtime_alignment(void);
SIMPLER_API const SimplerPipelineContract* get_pipeline_contract(void);
SIMPLER_API const SimplerPipelineContract* get_pipeline_contract_ctx(void* context);
SIMPLER_API int supports_concurrent_native_prepare_ctx(void* context);

/* NULL config: all defaults. NULL descriptor: slot 0, bank 0. Beside a launched run one more may be prepared, in the other
 * slot. -1: storage in use, not zeroed or not aligned; unknown id; no place. Other codes as for simpler_launch_run. */
SIMPLER_API int simpler_prepare_run(void* context, void* storage, int32_t id, const SimplerTaskArgs* args,
                                    const SimplerCallConfig* config, const SimplerRunDescriptor* descriptor);
/* -1 while another run is between launch and finalize. After a failure the run is complete and can only be finalized. */
SIMPLER_API int simpler_launch_run(void* context, void* storage);
SIMPLER_API int simpler_poll_run(void* context, void* storage); /* SIMPLER_POLL_...; -1 before the launch */
SIMPLER_API int simpler_wait_run(void* context, void* storage); /* how the device ended it; -1 before the launch */
/* The same with a limit; < 0: none. *ended: 1 if the run has ended, 0 if the limit passed, which is no failure. */
SIMPLER_API int simpler_wait_run_for(void* context, void* storage, int64_t timeout_ns, int* ended);
/* How the run ended, after writing its results; waits for it if need be. 0 for one that was never launched. */
SIMPLER_API int simpler_finalize_run(void* context, void* storage);
SIMPLER_API int simpler_finalize_run_timed(void* context, void* storage, SimplerRunTiming* timing); /* NULL: untold */
/* The number of the prepared run, unique in the process; 0 for storage without one. */
SIMPLER_API uint64_t simpler_run_epoch(const void* storage);
/* All of them; the first failure, finalization's before the others. */
SIMPLER_API int simpler_run(void* context, void* storage, int32_t id, const SimplerTaskArgs* args,
                            const SimplerCallConfig* config, const SimplerRunDescriptor* descriptor);

/* ---- facts ---- */

SIMPLER_API uint64_t get_arena_bank_gm_heap_base_ctx(void* context, int32_t bank);
SIMPLER_API uint64_t get_retained_temp_addr_ctx(void* context, int32_t slot);
SIMPLER_API uint64_t get_aicpu_dlopen_count(void* context); /* 0 again after finalize_device */
SIMPLER_API uint64_t get_host_dlopen_count(void* context);
SIMPLER_API uint64_t get_run_stream_set_create_count(void* context);
SIMPLER_API int simpler_cluster_count_ctx(void* context); /* that a launch may use; 0: not initialised */
SIMPLER_API int simpler_thread_count_ctx(void* context);  /* that run kernels or control them */

/* ---- the rest ---- */

/* Bit 0 SDMA, bit 1 URMA. Once per device. -1 on a simulated device unless the mask is 0. */
SIMPLER_API int simpler_provision_dma_workspace(void* context, uint32_t mask);
/* Shares the process's logger. -1: NULL, another version, too small, or a threshold that is none. */
SIMPLER_API int simpler_host_log_bind_state(SimplerHostLogState* state);

#ifdef __cplusplus
}
#endif

#include "host/simpler_comm.h"

#endif /* SIMPLER_HOST_H */
