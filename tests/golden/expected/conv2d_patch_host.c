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
    /* for each pixel of the output */
    for (int32_t y = row_begin; y < row_end; ++y) {
        for (int32_t x = 0; x < 5; ++x) {
            int8_t patch[12];
            /* gather what lies under the window; outside the input it is the zero point */
            for (int32_t ky = 0; ky < 2; ++ky) {
                for (int32_t kx = 0; kx < 2; ++kx) {
                    const int32_t offset = ((ky * 2) + kx) * 3;
                    const int32_t iy = y + ky;
                    const int32_t ix = x + kx;
                    const bool inside = (iy < 5) && (ix < 5);
                    const int8_t *const tap = inside ? &input[((iy * 5) + ix) * 3] : zero_points;
                    for (int32_t k = 0; k < 3; ++k) {
                        patch[offset + k] = tap[k];
                    }
                }
            }
            {
                const int8_t *const filters = weights;
                int32_t acc0 = bias[0];
                int32_t acc1 = bias[1];
                /* multiply and add */
                for (int32_t k = 0; k < 12; ++k) {
                    const uint8_t value = (uint8_t)(patch[k] + 128);
                    acc0 += value * filters[k];
                    acc1 += value * filters[k + 12];
                }
                const int32_t scaled0 = double_round(acc0, 1099511628, shift[0]);
                int8_t *const output_block = &output[((y * 5) + x) * 2];
                output_block[0] = (int8_t)(scaled0 - 4);
                const int32_t scaled1 = double_round(acc1, 1099511628, shift[1]);
                output_block[1] = (int8_t)(scaled1 - 4);
            }
        }
    }
}
