/* hand.tflite, operator x_wide
 *   input: i8[2x8]
 *   input_1: i8[2x8]
 *   output: i8[2x8] */
void hand_x_wide(const int8_t *restrict input, const int8_t *restrict input_1, int8_t *restrict output)
{
    for (int32_t x = 0; x < 2; ++x) {
        for (int32_t c = 0; c < 8; ++c) {
            const int32_t scaled = (int32_t)((((int64_t)((input_1[(x * 8) + c] - 5) * 2097152) *
                INT64_C(1073741901)) + INT64_C(2147483648)) >> 32);
            const int32_t scaled_1 = (int32_t)((((int64_t)(((int32_t)((((int64_t)((input[(x * 8) + c] - 5) *
                2097152) * INT64_C(1073741901)) + INT64_C(2147483648)) >> 32) + ((scaled + (scaled >> 31) + 1)
                >> 1)) * 2) * INT64_C(1518500250)) + INT64_C(2147483648)) >> 32);
            output[(x * 8) + c] = (int8_t)min_i32(max_i32(((scaled_1 + (scaled_1 >> 31) + 262144) >> 19) - 10,
                -10), 90);
        }
    }
}
