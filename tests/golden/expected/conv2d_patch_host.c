/* hand.tflite, operator y
 *   input: i8[1x5x5x3]
 *   zero_points: i8[3]
 *   weights: i8[2x12]
 *   bias: i32[2]
 *   shift: i8[2]
 *   output: i8[1x5x5x2] */
void hand_y(
    const int8_t *restrict input,
    const int8_t *restrict zero_points,
    const int8_t *restrict weights,
    const int32_t *restrict bias,
    const int8_t *restrict shift,
    int8_t *restrict output,
    int32_t row_begin,
    int32_t row_end)
{
    for (int32_t y = row_begin; y < row_end; ++y) {
        for (int32_t x = 0; x < 5; ++x) {
            int8_t patch[12];
            for (int32_t ky = 0; ky < 2; ++ky) {
                for (int32_t kx = 0; kx < 2; ++kx) {
                    const int32_t iy = y + ky;
                    const int32_t ix = x + kx;
                    const int8_t *const tap = ((iy < 5) && (ix < 5)) ? input + (((iy * 5) + ix) * 3) :
                        zero_points;
                    for (int32_t k = 0; k < 3; ++k) {
                        patch[(((ky * 2) + kx) * 3) + k] = tap[k];
                    }
                }
            }
            {
                const int8_t *const filters = weights;
                int32_t acc0 = bias[0];
                int32_t acc1 = bias[1];
                for (int32_t k_1 = 0; k_1 < 12; ++k_1) {
                    const uint8_t value = (uint8_t)(patch[k_1] + 128);
                    acc0 += value * filters[k_1];
                    acc1 += value * filters[k_1 + 12];
                }
                const int32_t scaled = double_round_short(acc0, 1099511628, shift[0]);
                output[((y * 5) + x) * 2] = (int8_t)(scaled - 4);
                const int32_t scaled_1 = double_round_short(acc1, 1099511628, shift[1]);
                output[(((y * 5) + x) * 2) + 1] = (int8_t)(scaled_1 - 4);
            }
        }
    }
}
