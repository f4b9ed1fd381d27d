/* hand.tflite, operator y
 *   input: i8[1x5x5x20]
 *   weights: i8[4x20]
 *   bias: i32[4]
 *   multiplier: i32[4]
 *   shift: i8[4]
 *   output: i8[1x5x5x4] */
void hand_y(
    const int8_t *restrict input,
    const int8_t *restrict weights,
    const int32_t *restrict bias,
    const int32_t *restrict multiplier,
    const int8_t *restrict shift,
    int8_t *restrict output,
    int32_t row_begin,
    int32_t row_end)
{
    for (int32_t y = row_begin; y < row_end; ++y) {
        for (int32_t x = 0; x < 5; ++x) {
            {
                const int8_t *const filters = weights;
                int32_t acc0 = bias[0];
                int32_t acc1 = bias[1];
                int32_t acc2 = bias[2];
                int32_t acc3 = bias[3];
                const int8_t *const row = input + (((y * 5) + x) * 20);
                for (int32_t k = 0; k < 20; ++k) {
                    const int32_t value = row[k];
                    acc0 += value * filters[k];
                    acc1 += value * filters[k + 20];
                    acc2 += value * filters[k + 40];
                    acc3 += value * filters[k + 60];
                }
                const int32_t shift_1 = shift[0];
                const int32_t scaled = (int32_t)((((int64_t)(acc0 * 2) * (int64_t)multiplier[0]) +
                    INT64_C(2147483648)) >> 32);
                output[((y * 5) + x) * 4] = (int8_t)min_i32(max_i32(((scaled + (scaled >> 31) + (1 << (shift_1
                    - 1))) >> shift_1) - 4, -128), 127);
                const int32_t shift_2 = shift[1];
                const int32_t scaled_1 = (int32_t)((((int64_t)(acc1 * 2) * (int64_t)multiplier[1]) +
                    INT64_C(2147483648)) >> 32);
                output[(((y * 5) + x) * 4) + 1] = (int8_t)min_i32(max_i32(((scaled_1 + (scaled_1 >> 31) + (1
                    << (shift_2 - 1))) >> shift_2) - 4, -128), 127);
                const int32_t shift_3 = shift[2];
                const int32_t scaled_2 = (int32_t)((((int64_t)(acc2 * 2) * (int64_t)multiplier[2]) +
                    INT64_C(2147483648)) >> 32);
                output[(((y * 5) + x) * 4) + 2] = (int8_t)min_i32(max_i32(((scaled_2 + (scaled_2 >> 31) + (1
                    << (shift_3 - 1))) >> shift_3) - 4, -128), 127);
                const int32_t shift_4 = shift[3];
                const int32_t scaled_3 = (int32_t)((((int64_t)(acc3 * 2) * (int64_t)multiplier[3]) +
                    INT64_C(2147483648)) >> 32);
                output[(((y * 5) + x) * 4) + 3] = (int8_t)min_i32(max_i32(((scaled_3 + (scaled_3 >> 31) + (1
                    << (shift_4 - 1))) >> shift_4) - 4, -128), 127);
            }
        }
    }
}
