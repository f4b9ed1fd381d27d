int32_t two_run(two_context *context, const two_inputs *inputs, const two_outputs *outputs) {
    if ((context == NULL) || (inputs == NULL) || (outputs == NULL)) {
        return TWO_ERROR_NULL;
    }
    if (context->dtcm == NULL) {
        return TWO_ERROR_NOT_SET;
    }
    if (inputs->x == NULL) {
        return TWO_ERROR_NULL;
    }
    if (outputs->y == NULL) {
        return TWO_ERROR_NULL;
    }
    const int32_t shared = check_tensors(context, inputs, outputs);
    if (shared != TWO_OK) {
        return shared;
    }
    uint8_t *const dtcm = context->dtcm;
    const uint8_t *const flash = two_flash_parameters;
    TWO_STEP(0, dtcm);
    /* 1 (CONV_2D): i8[1,2,2,1] @caller -> i8[1,2,2,2] @dtcm+0 */
    two_conv2d_1(
        inputs->x,
        (const int8_t *)(flash + TWO_AT_FLASH_CONV2D_1__WEIGHTS),
        (const int32_t *)(const void *)(flash + TWO_AT_FLASH_CONV2D_1__SCALES),
        (const int8_t *)(flash + TWO_AT_FLASH_CONV2D_1__ZERO_POINTS),
        (int8_t *)(dtcm + TWO_AT_DTCM_CONV2D_1__OUT),
        0,
        2);
    TWO_STEP(1, dtcm);
    /* 2 (FULLY_CONNECTED): i8[1,1,1,8] @dtcm+0 -> i8[1,1,1,3] @caller */
    two_fully_connected_2(
        (const int8_t *)(dtcm + TWO_AT_DTCM_CONV2D_1__OUT),
        (const int8_t *)(flash + TWO_AT_FLASH_FULLY_CONNECTED_2__WEIGHTS),
        (const int32_t *)(const void *)(flash + TWO_AT_FLASH_FULLY_CONNECTED_2__SCALES),
        outputs->y);
    TWO_STEP(2, dtcm);
    return TWO_OK;
}
