/* ---- Types --------------------------------------------------------------------------------------------- */

/* What a run reads, row by row. A run does not change it. */
typedef struct {
    const int8_t *x; /* i8[1,2,2,1], scale 0.5, zero point 3 */
} two_inputs;

/* Where a run writes its results, row by row. */
typedef struct {
    int8_t *y; /* i8[1,3], scale 4, zero point 0 */
} two_outputs;

/* Some memory of the application. */
typedef struct {
    void *base;
    size_t size_bytes;
} two_memory;

/* The memory that runs work in: one for each workspace pool. */
typedef struct {
    two_memory dtcm; /* 8 bytes, aligned to 16, in memory 'dtcm' */
} two_workspaces;

/* Owned by the caller, zeroed before the first use; its members are private. */
typedef struct {
    uint8_t *dtcm;
} two_context;

/* The bytes of parameters that this code has itself. */
extern const uint8_t two_flash_parameters[TWO_FLASH_PARAMETERS_SIZE];

/* ---- Functions ----------------------------------------------------------------------------------------- */

/* Lends the workspaces to the context until the next call. Refuses memory that is NULL, too small,
 * misaligned, overlapping, or outside of the target's memory; then the context is as it was.
 * Returns TWO_OK, or the error NULL, SIZE, ALIGN, RANGE or OVERLAP. */
int32_t two_set_workspaces(two_context *context, const two_workspaces *workspaces);

/* Runs one inference. Outputs and workspaces share no bytes with each other, with inputs, with parameters,
 * or with what the arguments point to. Inputs are not changed.
 * At most TWO_STACK_SIZE bytes of stack are used.
 * Nothing is global and mutable: contexts of their own may run in threads of their own.
 * Returns TWO_OK, or the error NULL, NOT_SET, OVERLAP or RANGE. */
int32_t two_run(two_context *context, const two_inputs *inputs, const two_outputs *outputs);

/* ---- Hook ---------------------------------------------------------------------------------------------- */

/* TWO_STEP(step, ...) stands in two.c before each kernel and behind the last, where a workspace is used:
 * the step's number, then the addresses of the workspaces. It is empty unless it is defined when that file
 * is compiled (-D, or -include with the functions that it calls): to measure, to feed a watchdog, or to
 * watch memory. */

#ifdef __cplusplus
}
#endif

#endif /* TWO_H */
