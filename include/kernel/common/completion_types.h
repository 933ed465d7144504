// What a completion condition waits for, and which engine it belongs to (a label for tools).
#pragma once

#define COMPLETION_ENGINE_SDMA 0u
#define COMPLETION_ENGINE_ROCE 1u
#define COMPLETION_ENGINE_URMA 2u
#define COMPLETION_ENGINE_CCU 3u

#define COMPLETION_TYPE_COUNTER 0            // *(uint32_t *)addr >= expected_value
#define COMPLETION_TYPE_SDMA_EVENT_RECORD 1  // *(uint64_t *)addr >= backend_cookie: posts completed so far
#define COMPLETION_TYPE_URMA_EVENT_HANDLE 2
