/* Begins an inference, whatever the one before came to. Outputs and workspaces share no bytes with each
 * other, with parameters, with the context, or with what the argument points to; they belong to the
 * inference until it is finished.
 * At most DIGITS_STACK_SIZE bytes of stack are used.
 * Nothing is global and mutable: contexts of their own may run in threads of their own.
 * Returns DIGITS_OK, or the error NULL, NOT_SET, OVERLAP or RANGE. */
int32_t digits_begin(digits_context *context, const digits_outputs *outputs);

/* Takes the next rows of input 'image', i8[1,8,8,1], scale 0.0625, zero point 0, from the top: 8 bytes
 * each, DIGITS_INPUT_IMAGE_ROWS in all, in as many calls as the application likes. Computes what they let
 * be computed; the rows need not be kept. They share no bytes with outputs, workspaces and context.
 * At most DIGITS_STACK_SIZE bytes of stack are used. An error of the rows changes nothing: others may be
 * pushed.
 * Returns DIGITS_OK, or the error NULL, NOT_BEGUN, ROWS, OVERLAP or RANGE. */
int32_t digits_push_rows(digits_context *context, const int8_t *rows, int32_t num_rows);

/* Computes the rest, when all rows were pushed; the outputs are there afterwards.
 * At most DIGITS_STACK_SIZE bytes of stack are used.
 * Returns DIGITS_OK, or the error NULL, NOT_BEGUN or INCOMPLETE. */
int32_t digits_finish(digits_context *context);
