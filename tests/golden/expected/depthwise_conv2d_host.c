/* hand.tflite, operator y
 *   input: i8[1x4x5x6]
 *   weights: i8[2x6]
 *   bias: i32[6]
 *   zero_points: i8[6]
 *   output: i8[1x4x5x6] */
void hand_y(
    const int8_t *restrict input,
    const int8_t *restrict weights,
    const int32_t *restrict bias,
    const int8_t *restrict zero_points,
    int8_t *restrict output,
    int32_t row_begin,
    int32_t row_end)
{
    /* for each pixel of the output */
    for (int32_t y = row_begin; y < row_end; ++y) {
        for (int32_t x = 0; x < 5; ++x) {
            const int32_t pixel = ((y * 5) + x) * 6;
            const int32_t iy0 = y - 1;
            const int8_t *const tap0 = (iy0 >= 0) ? &input[((iy0 * 5) + x) * 6] : zero_points;
            const int8_t *const tap1 = &input[pixel];
            /* for each channel: all taps, then scale and store */
            for (int32_t c = 0; c < 6; ++c) {
                int32_t acc = bias[c];
                acc += (int16_t)((tap0[c] * weights[c]) + (tap1[c] * weights[c + 6]));
                const int32_t scaled = double_round(acc, 1374389535, 6);
                output[pixel + c] = (int8_t)(scaled - 4);
            }
        }
    }
}
