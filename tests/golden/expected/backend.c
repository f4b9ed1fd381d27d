/* Serves what model 'm' requests at run time, from planned arenas. Define M_OWN_BACKEND for this file, or
 * leave it out, and link functions of your own instead.
 * Generated code: whoever generated it may use, change and pass it on without conditions. */
#include "m.h"

#ifndef M_OWN_BACKEND

static m_arena *find_arena(m_context *context, int32_t pool) {
    if (context == NULL) {
        return NULL;
    }
    if (pool == M_POOL_RAM) {
        return &context->ram_arena;
    }
    return NULL;
}

void *m_backend_alloc_workspace(m_context *context, int32_t pool, uint64_t size_bytes, uint32_t alignment) {
    m_arena *const arena = find_arena(context, pool);

    if (arena == NULL || alignment == 0 || (alignment & (alignment - 1)) != 0) {
        return NULL;
    }
    if (arena->base == NULL || arena->depth >= M_ARENA_DEPTH) {
        return NULL;
    }
    /* In 64 bits, and by subtraction from what is free, so that nothing overflows. */
    const uint64_t address = (uint64_t)(uintptr_t)arena->base + arena->used_bytes;
    const uint64_t padding_bytes = (0u - address) & (uint64_t)(alignment - 1);
    const uint64_t free_bytes = arena->size_bytes - arena->used_bytes;
    if (padding_bytes > free_bytes || size_bytes > free_bytes - padding_bytes) {
        return NULL;
    }
    const uint64_t begin = arena->used_bytes + padding_bytes;
    arena->blocks[arena->depth].begin = begin;
    arena->blocks[arena->depth].used_bytes_before = arena->used_bytes;
    arena->depth += 1;
    arena->used_bytes = begin + size_bytes;
    return arena->base + (size_t)begin;
}

int32_t m_backend_free_workspace(m_context *context, int32_t pool, void *memory) {
    m_arena *const arena = find_arena(context, pool);

    if (context == NULL || memory == NULL) {
        return M_ERROR_NULL;
    }
    if (arena == NULL || arena->depth == 0) {
        return M_ERROR_ORDER;
    }
    if (memory != arena->base + (size_t)arena->blocks[arena->depth - 1].begin) {
        return M_ERROR_ORDER;
    }
    arena->depth -= 1;
    arena->used_bytes = arena->blocks[arena->depth].used_bytes_before;
    return M_OK;
}

#endif /* M_OWN_BACKEND */
