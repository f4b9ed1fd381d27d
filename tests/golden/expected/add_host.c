/* hand.tflite, operator x_wide
 *   input: i8[2x8]
 *   input_1: i8[2x8]
 *   output: i8[2x8] */
void hand_x_wide(const int8_t *restrict input, const int8_t *restrict input_1, int8_t *restrict output)
{
    /* element by element: load, compute, store */
    for (int32_t x = 0; x < 2; ++x) {
        for (int32_t c = 0; c < 8; ++c) {
            const int32_t left_wide = (input[(x * 8) + c] - 5) * 1048576;
            const int32_t left = high_multiply(left_wide, 1073741901);
            const int32_t right_wide = (input_1[(x * 8) + c] - 5) * 1048576;
            const int32_t right = double_round(right_wide, 1073741901, 1);
            const int32_t result = double_round(left + right, 1518500250, 19);
            output[(x * 8) + c] = (int8_t)clamp_i32(result - 10, -10, 90);
        }
    }
}
