/* simpler_comm.h: communication between chips of one host, as C functions of the shared library simpler_host. Part of
 * simpler_host.h, whose words on results hold here too.
 *
 * What      A session is a group of processes, one rank each, that the same parent process started. Its ranks share memory
 *           windows, one each, that kernels of all ranks reach through a CommContext (platform_comm/comm_context.h).
 * Devices   Simulated ones, and boards through emulated vendor libraries: there device memory is memory of the host, a
 *           `stream` is NULL (or what create_comm_stream_ctx gave), and windows are POSIX shared memory. A board needs
 *           the vendor's HCCL for this, which is not supported yet: comm_init answers SIMPLER_ERR_UNSUPPORTED there.
 * Windows   Whole pages, zeroed. Host code reaches them by their addresses; copy_to_device_ctx and copy_from_device_ctx
 *           take them as well.
 * Waits     comm_alloc_windows, comm_alloc_domain_windows, comm_release_domain_windows and comm_barrier wait until every
 *           rank concerned has called them, but no longer than 120 s. A rank that died or left ends the wait at once. After
 *           a failure the session (or the domain) is broken: all its waits fail with the same reason.
 * Threads   Calls on one session are serialised by the caller.
 * Lifetime  Contexts and windows of a domain live until its release, the others until comm_destroy. Sessions do not end
 *           with a device context. A session belongs to the process that opened it, not to its forked children.
 */
#ifndef SIMPLER_COMM_H
#define SIMPLER_COMM_H

#ifndef SIMPLER_HOST_H
#include "host/simpler_host.h"
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define SIMPLER_COMM_MAX_RANKS 64

typedef struct SimplerCommSession SimplerCommSession;

/* ---- streams for libraries of communication: boards alone; a simulated device answers 0, NULL and 0 ---- */

/* The vendor's set-up of the process (aclInit) and of the calling thread. `device` is the context's. */
SIMPLER_API int ensure_acl_ready_ctx(void* context, int device);
/* NULL on a failure too: simpler_last_error_code() tells. finalize_device takes back what is left. */
SIMPLER_API void* create_comm_stream_ctx(void* context);
SIMPLER_API int destroy_comm_stream_ctx(void* context, void* stream); /* 0 for NULL */

/* ---- sessions ---- */

/* Waits for nobody. `path` names the session: any text that its ranks agree on; no file is made. NULL on a failure, whose
 * code simpler_last_error_code() tells. A rank is open once at a time. */
SIMPLER_API SimplerCommSession* comm_init(int rank, int rank_count, void* stream, const char* path);
/* The windows of all ranks, of the same size; *device_context: the address of a CommContext. Once. */
SIMPLER_API int comm_alloc_windows(SimplerCommSession* session, size_t bytes, uint64_t* device_context);
SIMPLER_API int comm_get_local_window_base(SimplerCommSession* session, uint64_t* address);
SIMPLER_API int comm_get_window_size(SimplerCommSession* session, size_t* bytes);
/* A part of the windows, for some of the ranks: rank_ids[domain_rank] is the caller. */
SIMPLER_API int comm_derive_context(SimplerCommSession* session, const uint32_t* rank_ids, size_t rank_count,
                                    uint32_t domain_rank, size_t window_offset, size_t window_bytes,
                                    uint64_t* device_context);
SIMPLER_API int comm_barrier(SimplerCommSession* session);
/* Waits for nobody; what is still allocated goes. NULL: 0. */
SIMPLER_API int comm_destroy(SimplerCommSession* session);

/* ---- domains: windows of their own, for some ranks of a session ---- */

/* All ranks of the domain pass the same id and list. An id may be used again after its release. */
SIMPLER_API int comm_alloc_domain_windows(SimplerCommSession* session, uint64_t allocation_id, const uint32_t* rank_ids,
                                          size_t rank_count, uint32_t domain_rank, size_t window_bytes,
                                          uint64_t* device_context, uint64_t* local_window_base);
/* The memory is given back also if this fails. */
SIMPLER_API int comm_release_domain_windows(SimplerCommSession* session, uint64_t allocation_id);

/* ---- global domains: ranks of different sessions, which the caller brings together ---- */

#define SIMPLER_GLOBAL_DOMAIN_VERSION 2
enum {
  SIMPLER_COMM_PROFILE_SHARED_MEMORY = 1, /* all ranks on one host */
  SIMPLER_COMM_PROFILE_FABRIC = 2         /* not supported */
};
/* How the other ranks find a window. Plain bytes: they may be sent anywhere. */
typedef struct {
  uint32_t version;
  uint32_t profile;
  uint32_t domain_rank;
  uint32_t rank_count;
  uint64_t mapping_size; /* bytes of the window */
  uint32_t handle_size;
  uint32_t reserved;
  uint8_t handle[256];
} SimplerGlobalDomainDescriptor;

/* Makes the caller's window. Waits for nobody. */
SIMPLER_API int comm_global_domain_prepare(SimplerCommSession* session, uint64_t domain_id, uint32_t profile,
                                           uint32_t domain_rank, uint32_t rank_count, size_t window_bytes,
                                           SimplerGlobalDomainDescriptor* descriptor);
/* Takes one descriptor of each rank, in any order. Each of them must live until all have imported it. */
SIMPLER_API int comm_global_domain_import(SimplerCommSession* session, uint64_t domain_id,
                                          const SimplerGlobalDomainDescriptor* descriptors, size_t count,
                                          uint64_t* device_context, uint64_t* local_window_base);
SIMPLER_API int comm_global_domain_release(SimplerCommSession* session, uint64_t domain_id);

/* ---- workspaces of DMA engines: bit 0 SDMA, bit 1 URMA ---- */

SIMPLER_API uint32_t comm_dma_workspace_supported_mask(void* context); /* 0 on a simulated device */
/* As simpler_provision_dma_workspace; addresses[n]: of engine n's workspace, 0 for none. */
SIMPLER_API int comm_dma_workspace_provision(void* context, uint32_t mask, uint64_t addresses[2]);
SIMPLER_API int comm_dma_workspace_release(void* context); /* 0 if there is none */

#ifdef __cplusplus
}
#endif

#endif /* SIMPLER_COMM_H */
