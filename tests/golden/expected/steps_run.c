    /* identity: i32[4] @caller -> i32[4] @caller */
    steps_last(inputs->x, outputs->last);
    /* 3 turns of 'step' */
    for (int32_t turn = 0; turn < 3; ++turn) {
        if (*inputs->enabled != 0) {
            STEPS_STEP(1, ram);
            /* clamp + add: i32[4] @caller -> i32[4] @ram+0 */
            steps_small(outputs->last, (int32_t *)(void *)(ram + STEPS_AT_RAM_CHOSEN));
        } else {
            STEPS_STEP(2, ram);
            /* clamp + add: i32[4] @caller -> i32[4] @ram+0 */
            steps_chosen(
                outputs->last,
                (const int32_t *)(const void *)(rodata + STEPS_AT_RODATA_CHOSEN__OPERAND),
                (int32_t *)(void *)(ram + STEPS_AT_RAM_CHOSEN));
        }
        STEPS_STEP(3, ram);
        /* clamp + add: i32[4] @ram+0 -> i32[4] @caller */
        steps_chosen(
            (const int32_t *)(const void *)(ram + STEPS_AT_RAM_CHOSEN),
            (const int32_t *)(const void *)(rodata + STEPS_AT_RODATA_CHOSEN__OPERAND),
            outputs->last);
    }
    STEPS_STEP(4, ram);
    return STEPS_OK;
}
