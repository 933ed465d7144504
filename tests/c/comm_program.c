/* A program in C whose processes communicate: comm_program [PLATFORM PROGRAM]. Checks every rule of host/simpler_comm.h
 * that a caller can break; exit code 0: all held. PLATFORM, if given, is a board's, whose vendor libraries can be found;
 * PROGRAM is the text of its control processors' program. Its memory is this host's if SIMPLER_EMULATED_VENDOR is set. */
#include "host/simpler_comm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "expect.h"

enum { kRanks = 2 };

struct Exchange {
  SimplerGlobalDomainDescriptor descriptors[kRanks];
};

/* As in platform_comm/comm_context.h, which is C++. */
struct Context {
  uint64_t workspace, workspace_bytes;
  uint32_t rank, rank_count;
  uint64_t window_bytes, windows_in[64], windows_out[64];
};

static const struct Context* context_at(uint64_t address) { return (const struct Context*)(uintptr_t)address; }
static volatile int32_t* word_at(uint64_t address) { return (volatile int32_t*)(uintptr_t)address; }

static void nulls(void) {
  uint64_t out, workspaces[2];
  size_t bytes;
  uint32_t ids[1] = {0};
  SimplerGlobalDomainDescriptor descriptor;
  EXPECT(ensure_acl_ready_ctx(NULL, 0) == -1);
  EXPECT(create_comm_stream_ctx(NULL) == NULL);
  EXPECT(destroy_comm_stream_ctx(NULL, NULL) == -1);
  EXPECT(comm_init(0, 1, NULL, NULL) == NULL && simpler_last_error_code() == -1);
  EXPECT(comm_alloc_windows(NULL, 8, &out) == -1);
  EXPECT(comm_get_local_window_base(NULL, &out) == -1);
  EXPECT(comm_get_window_size(NULL, &bytes) == -1);
  EXPECT(comm_derive_context(NULL, ids, 1, 0, 0, 8, &out) == -1);
  EXPECT(comm_barrier(NULL) == -1);
  EXPECT(comm_destroy(NULL) == 0);
  EXPECT(comm_alloc_domain_windows(NULL, 1, ids, 1, 0, 8, &out, &out) == -1);
  EXPECT(comm_release_domain_windows(NULL, 1) == -1);
  EXPECT(comm_global_domain_prepare(NULL, 1, 1, 0, 1, 8, &descriptor) == -1);
  EXPECT(comm_global_domain_import(NULL, 1, &descriptor, 1, &out, &out) == -1);
  EXPECT(comm_global_domain_release(NULL, 1) == -1);
  EXPECT(comm_dma_workspace_supported_mask(NULL) == 0);
  EXPECT(comm_dma_workspace_provision(NULL, 0, workspaces) == -1);
  EXPECT(comm_dma_workspace_release(NULL) == -1);
}

static void arguments(void) {
  uint64_t out;
  uint32_t ids[1] = {0};
  SimplerGlobalDomainDescriptor descriptor;
  SimplerCommSession* session;
  int not_a_stream;
  EXPECT(comm_init(1, 1, NULL, "arguments") == NULL && simpler_last_error_kind() == SIMPLER_ERROR_VALUE);
  EXPECT(comm_init(0, 65, NULL, "arguments") == NULL && strstr(simpler_last_error(), "1 to 64") != NULL);
  EXPECT(comm_init(0, 1, &not_a_stream, "arguments") == NULL && simpler_last_error_code() == -1);
  session = comm_init(0, 1, NULL, "arguments");
  EXPECT(session != NULL);
  EXPECT(comm_init(0, 1, NULL, "arguments") == NULL && simpler_last_error_kind() == SIMPLER_ERROR_STATE);
  EXPECT(comm_get_local_window_base(session, &out) == -1);
  EXPECT(comm_alloc_windows(session, 8, NULL) == -1);
  EXPECT(comm_get_local_window_base(session, NULL) == -1);
  EXPECT(comm_get_window_size(session, NULL) == -1);
  EXPECT(comm_derive_context(session, ids, 1, 0, 0, 8, NULL) == -1);
  EXPECT(comm_alloc_domain_windows(session, 1, ids, 1, 0, 8, NULL, &out) == -1);
  EXPECT(comm_alloc_domain_windows(session, 1, NULL, 1, 0, 8, &out, &out) == -1);
  EXPECT(comm_release_domain_windows(session, 1) == -1 && simpler_last_error_kind() == SIMPLER_ERROR_KEY);
  EXPECT(comm_global_domain_prepare(session, 1, 1, 0, 1, 8, NULL) == -1);
  EXPECT(comm_global_domain_prepare(session, 1, SIMPLER_COMM_PROFILE_FABRIC, 0, 1, 8, &descriptor) ==
         SIMPLER_ERR_UNSUPPORTED);
  EXPECT(comm_global_domain_prepare(session, 1, 3, 0, 1, 8, &descriptor) == -1);
  EXPECT(comm_global_domain_import(session, 1, NULL, 1, &out, &out) == -1);
  EXPECT(comm_global_domain_import(session, 1, &descriptor, 1, &out, &out) == -1);
  EXPECT(comm_global_domain_release(session, 1) == -1);
  EXPECT(comm_destroy(session) == 0);
}

static void rank(int own, struct Exchange* exchange) {
  const uint32_t ids[kRanks] = {0, 1};
  const int peer = 1 - own;
  uint64_t context, base, part, domain, domain_base, workspaces[2] = {1, 1};
  size_t bytes;
  void* device = simpler_create_device_context("a2a3sim", "tensormap_and_ringbuffer");
  SimplerCommSession* session;
  int32_t value = 7 + own;
  EXPECT(simpler_init(device, own, NULL, 0, NULL, 0, NULL, 0, NULL) == 0);
  EXPECT(ensure_acl_ready_ctx(device, own) == 0);
  EXPECT(create_comm_stream_ctx(device) == NULL);
  EXPECT(destroy_comm_stream_ctx(device, NULL) == 0);
  EXPECT(comm_dma_workspace_supported_mask(device) == 0);
  EXPECT(comm_dma_workspace_provision(device, 0, workspaces) == 0 && workspaces[0] == 0 && workspaces[1] == 0);
  EXPECT(comm_dma_workspace_provision(device, 1, workspaces) == -1);
  EXPECT(comm_dma_workspace_provision(device, 0, NULL) == -1);
  EXPECT(comm_dma_workspace_release(device) == 0);

  session = comm_init(own, kRanks, NULL, "two ranks");
  EXPECT(session != NULL);
  if (session == NULL) return;
  EXPECT(comm_alloc_windows(session, 100, &context) == 0);
  EXPECT(comm_get_local_window_base(session, &base) == 0 && base == context_at(context)->windows_in[own]);
  EXPECT(comm_get_window_size(session, &bytes) == 0 && bytes == 4096);
  EXPECT(copy_to_device_ctx(device, (void*)(uintptr_t)base, &value, 4) == 0);
  EXPECT(comm_barrier(session) == 0);
  EXPECT(*word_at(context_at(context)->windows_out[peer]) == 7 + peer);
  EXPECT(comm_derive_context(session, ids, kRanks, (uint32_t)own, 64, 32, &part) == 0);
  EXPECT(context_at(part)->windows_in[peer] == context_at(context)->windows_in[peer] + 64);
  EXPECT(comm_derive_context(session, ids, kRanks, (uint32_t)peer, 64, 32, &part) == -1);

  EXPECT(comm_alloc_domain_windows(session, 3, ids, kRanks, (uint32_t)own, 8, &domain, &domain_base) == 0);
  *word_at(domain_base) = own;
  EXPECT(comm_barrier(session) == 0);
  EXPECT(*word_at(context_at(domain)->windows_in[peer]) == peer);
  EXPECT(comm_release_domain_windows(session, 3) == 0);

  EXPECT(comm_global_domain_prepare(session, 4, SIMPLER_COMM_PROFILE_SHARED_MEMORY, (uint32_t)own, kRanks, 8,
                                    &exchange->descriptors[own]) == 0);
  EXPECT(exchange->descriptors[own].version == SIMPLER_GLOBAL_DOMAIN_VERSION);
  EXPECT(comm_barrier(session) == 0); /* both descriptors are written */
  EXPECT(comm_global_domain_import(session, 4, exchange->descriptors, kRanks, &domain, &domain_base) == 0);
  *word_at(domain_base) = 20 + own;
  EXPECT(comm_barrier(session) == 0);
  EXPECT(*word_at(context_at(domain)->windows_in[peer]) == 20 + peer);
  EXPECT(comm_barrier(session) == 0);
  EXPECT(comm_global_domain_release(session, 4) == 0);
  EXPECT(comm_destroy(session) == 0);
  EXPECT(finalize_device(device) == 0);
  destroy_device_context(device);
}

static void ranks(void) {
  struct Exchange* exchange = mmap(NULL, sizeof *exchange, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  pid_t child[kRanks];
  int own, status;
  for (own = 0; own < kRanks; ++own) {
    child[own] = fork();
    if (child[own] != 0) continue;
    failures = 0;
    rank(own, exchange);
    _exit(failures == 0 ? 0 : 1);
  }
  for (own = 0; own < kRanks; ++own) {
    EXPECT(waitpid(child[own], &status, 0) == child[own]);
    EXPECT(status == 0);
  }
  munmap(exchange, sizeof *exchange);
}

static void board(const char* platform, const char* program) {
  const char* builtin = "builtin";
  const int emulated = getenv("SIMPLER_EMULATED_VENDOR") != NULL;
  void* device = simpler_create_device_context(platform, "tensormap_and_ringbuffer");
  void *stream, *second;
  SimplerCommSession* session;
  EXPECT(simpler_set_simulator_ctx(device, 1, 1) == -1);
  EXPECT(ensure_acl_ready_ctx(device, 0) == -1); /* not initialised */
  EXPECT(create_comm_stream_ctx(device) == NULL && simpler_last_error_kind() == SIMPLER_ERROR_STATE);
  EXPECT(simpler_init(device, 0, program, strlen(program), builtin, strlen(builtin), builtin, strlen(builtin), NULL) ==
         0);
  EXPECT(ensure_acl_ready_ctx(device, 1) == -1);
  EXPECT(ensure_acl_ready_ctx(device, 0) == 0);
  EXPECT(ensure_acl_ready_ctx(device, 0) == 0);
  stream = create_comm_stream_ctx(device);
  second = create_comm_stream_ctx(device);
  EXPECT(stream != NULL && second != NULL && second != stream);
  EXPECT(destroy_comm_stream_ctx(device, second) == 0);
  EXPECT(destroy_comm_stream_ctx(device, second) == -1);
  EXPECT(destroy_comm_stream_ctx(device, NULL) == 0);
  session = comm_init(0, 1, stream, "board");
  if (emulated) {
    EXPECT(session != NULL);
  } else {
    EXPECT(session == NULL && simpler_last_error_code() == SIMPLER_ERR_UNSUPPORTED);
    EXPECT(strstr(simpler_last_error(), "HCCL") != NULL);
  }
  EXPECT(comm_destroy(session) == 0);
  EXPECT(comm_init(0, 1, second, "board") == NULL && simpler_last_error_code() == -1);
  EXPECT(finalize_device(device) == 0); /* takes the stream back */
  destroy_device_context(device);
}

int main(int count, char** words) {
  if (count == 3) {
    board(words[1], words[2]);
  } else {
    nulls();
    arguments();
    ranks();
  }
  if (failures == 0) printf("every rule held\n");
  return failures == 0 ? 0 : 1;
}
