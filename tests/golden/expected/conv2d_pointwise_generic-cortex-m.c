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
            const int8_t *const filters = weights;
            int32_t acc0 = bias[0];
            int32_t acc1 = bias[1];
            int32_t acc2 = bias[2];
            int32_t acc3 = bias[3];
            const int8_t *const row = &input[((y * 5) + x) * 20];
            /* accumulate 4 output channels */
            for (int32_t k = 0; k < 20; ++k) {
                const int32_t value = row[k];
                acc0 += value * filters[k];
                acc1 += value * filters[k + 20];
                acc2 += value * filters[k + 40];
                acc3 += value * filters[k + 60];
            }
            const int32_t scaled0 = double_round(acc0, multiplier[0], shift[0]);
            int8_t *const output_block = &output[((y * 5) + x) * 4];
            output_block[0] = (int8_t)clamp_i32(scaled0 - 4, -128, 127);
            const int32_t scaled1 = double_round(acc1, multiplier[1], shift[1]);
            output_block[1] = (int8_t)clamp_i32(scaled1 - 4, -128, 127);
            const int32_t scaled2 = double_round(acc2, multiplier[2], shift[2]);
            output_block[2] = (int8_t)clamp_i32(scaled2 - 4, -128, 127);
            const int32_t scaled3 = double_round(acc3, multiplier[3], shift[3]);
            output_block[3] = (int8_t)clamp_i32(scaled3 - 4, -128, 127);
        }
    }
}
