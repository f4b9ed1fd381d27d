int32_t digits_push_rows(digits_context *context, const int8_t *rows, int32_t num_rows) {
    if ((context == NULL) || (rows == NULL)) {
        return DIGITS_ERROR_NULL;
    }
    if (context->is_begun == 0) {
        return DIGITS_ERROR_NOT_BEGUN;
    }
    if ((num_rows < 0) || (num_rows > (DIGITS_INPUT_IMAGE_ROWS - context->num_rows))) {
        return DIGITS_ERROR_ROWS;
    }
    if (num_rows == 0) {
        return DIGITS_OK;
    }
    const int32_t shared = check_pushed_rows(context, rows, num_rows);
    if (shared != DIGITS_OK) {
        return shared;
    }
    for (int32_t pushed = 0; pushed < num_rows; ++pushed) {
        const int32_t status = run_row(context, rows + ((size_t)pushed * 8u), context->num_rows);
        if (status != DIGITS_OK) {
            context->is_begun = 0;
            return status;
        }
        ++context->num_rows;
    }
    return DIGITS_OK;
}
