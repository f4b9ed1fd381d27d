static int32_t run_row(digits_context *context, const int8_t *rows, int32_t row) {
    uint8_t *const ram = context->ram;
    const uint8_t *const rodata = digits_rodata_parameters;
    const int32_t pass = row + 1;
    const int32_t turn = pass / 4;
    const int32_t part = pass / 2 % 2;
    const int32_t part_1 = pass % 2;
    DIGITS_STEP(0, ram);
    /* digits_take_rows: i8[1,8,8,1] @caller -> i8[1,8,8,1] ring of 3 rows @ram+1280 */
    digits_take_rows(
        rows,
        (int8_t *)(ram + DIGITS_AT_RAM_IMAGE__ROWS),
        ((((turn - 1) * 2) + part) * 2) + part_1 + 3,
        ((((turn - 1) * 2) + part) * 2) + part_1 + 4);
    DIGITS_STEP(1, ram);
    /* 0 (CONV_2D): i8[1,8,8,1] ring of 3 rows @ram+1280 -> i8[1,8,8,16] ring of 3 rows @ram+0 */
    digits_conv2d_0_rows(
        (const int8_t *)(ram + DIGITS_AT_RAM_IMAGE__ROWS),
        (int8_t *)(ram + DIGITS_AT_RAM_CONV2D_0__OUT),
        ((((turn - 1) * 2) + part) * 2) + part_1 + 2,
        ((((turn - 1) * 2) + part) * 2) + part_1 + 3);
    DIGITS_STEP(2, ram);
    /* 1 (DEPTHWISE_CONV_2D): i8[1,8,8,16] ring of 3 rows @ram+0 -> i8[1,8,8,16] ring of 1 row @ram+1152 */
    digits_depthwise_conv2d_1_rows(
        (const int8_t *)(ram + DIGITS_AT_RAM_CONV2D_0__OUT),
        (int8_t *)(ram + DIGITS_AT_RAM_DEPTHWISE_CONV2D_1__OUT),
        ((((turn - 1) * 2) + part) * 2) + part_1 + 1,
        ((((turn - 1) * 2) + part) * 2) + part_1 + 2);
    DIGITS_STEP(3, ram);
    /* 2 (CONV_2D) + 3 (ADD): i8[1,8,8,16] ring of 1 row @ram+1152, i8[1,8,8,16] ring of 3 rows @ram+0 ->
     * i8[1,8,8,16] ring of 3 rows @ram+384 */
    digits_conv2d_2_rows(
        (const int8_t *)(ram + DIGITS_AT_RAM_DEPTHWISE_CONV2D_1__OUT),
        (const int8_t *)(ram + DIGITS_AT_RAM_CONV2D_0__OUT),
        (int8_t *)(ram + DIGITS_AT_RAM_ADD_3__OUT),
        ((((turn - 1) * 2) + part) * 2) + part_1 + 1,
        ((((turn - 1) * 2) + part) * 2) + part_1 + 2);
    if (part_1 == 1) {
        DIGITS_STEP(4, ram);
        /* 4 (CONV_2D): i8[1,8,8,16] ring of 3 rows @ram+384 -> i8[1,4,4,32] ring of 2 rows @ram+768 */
        digits_conv2d_4_rows(
            (const int8_t *)(ram + DIGITS_AT_RAM_ADD_3__OUT),
            (int8_t *)(ram + DIGITS_AT_RAM_CONV2D_4__OUT),
            ((turn - 1) * 2) + part,
            ((turn - 1) * 2) + part + 1);
        if (part == 1) {
            DIGITS_STEP(5, ram);
            /* 5 (AVERAGE_POOL_2D): i8[1,4,4,32] ring of 2 rows @ram+768 -> i8[1,2,2,32] @ram+1024 */
            digits_average_pool2d_5_rows(
                (const int8_t *)(ram + DIGITS_AT_RAM_CONV2D_4__OUT),
                (int8_t *)(ram + DIGITS_AT_RAM_AVERAGE_POOL2D_5__OUT),
                turn - 1,
                turn);
        }
    }
    return DIGITS_OK;
}
