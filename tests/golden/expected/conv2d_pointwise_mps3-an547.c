/* hand.tflite, operator y
 *   input: i8[1x5x5x20]
 *   weights: i8[128]
 *   scales: i32[12]
 *   output: i8[1x5x5x4] */
void hand_y(
    const int8_t *restrict input,
    const int8_t *restrict weights,
    const int32_t *restrict scales,
    int8_t *restrict output,
    int32_t row_begin,
    int32_t row_end)
{
    for (int32_t y = row_begin; y < row_end; ++y) {
        const int32_t pixel = ((y * 5) + 4) * 20;
        const int32_t pixel_1 = ((y * 5) + 4) * 4;
        for (int32_t pair = 0; pair < 2; ++pair) {
            const int32_t x = pair * 2;
            const int32_t pixel_2 = ((y * 5) + x) * 20;
            const int32_t pixel_3 = ((y * 5) + (x + 1)) * 20;
            const int32_t pixel_4 = ((y * 5) + x) * 4;
            const int32_t pixel_5 = ((y * 5) + (x + 1)) * 4;
            mve_convolve_2x20_to_4_away(
                &output[pixel_4],
                &output[pixel_5],
                &input[pixel_2],
                &input[pixel_3],
                weights,
                scales,
                -4,
                -128,
                127);
        }
        mve_convolve_1x20_to_4_away(&output[pixel_1], &input[pixel], weights, scales, -4, -128, 127);
    }
}
