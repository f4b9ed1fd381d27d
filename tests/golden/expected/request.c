    uint8_t *const ram = context->ram;
    context->ram_arena.base = ram + M_AT_RAM_ARENA;
    context->ram_arena.size_bytes = M_RAM_ARENA_SIZE;
    context->ram_arena.used_bytes = 0;
    context->ram_arena.depth = 0;
    M_STEP(0, ram);
    /* 0 (OPEN): i8[rows[1..8]] @caller -> i8[rows[1..8]] @caller; requests y/scratch0, y/scratch1 from the
     * arena of 'ram', which has 160 B */
    {
        int32_t request_status = M_ERROR_NO_MEMORY;
        void *const request_y__scratch0 = m_backend_alloc_workspace(
            context,
            M_POOL_RAM,
            (uint64_t)rows * 1,
            16);
        if (request_y__scratch0 != NULL) {
            void *const request_y__scratch1 = m_backend_alloc_workspace(
                context,
                M_POOL_RAM,
                (uint64_t)rows * 12,
                64);
            if (request_y__scratch1 != NULL) {
                m_k(
                    inputs->x,
                    outputs->y,
                    rows,
                    (int8_t *)request_y__scratch0,
                    (int32_t *)request_y__scratch1);
                request_status = M_OK;
                request_status = first_error(
                    request_status,
                    m_backend_free_workspace(context, M_POOL_RAM, request_y__scratch1));
            }
            request_status = first_error(
                request_status,
                m_backend_free_workspace(context, M_POOL_RAM, request_y__scratch0));
        }
        if (request_status != M_OK) {
            return request_status;
        }
    }
    M_STEP(1, ram);
    return M_OK;
}
