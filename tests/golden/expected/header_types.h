typedef struct {
    const int8_t *x; /* i8[1,2,2,1], scale 0.5, zero point 3 */
} two_inputs;

typedef struct {
    int8_t *y; /* i8[1,3], scale 4, zero point 0 */
} two_outputs;

typedef struct {
    void *base;
    size_t size_bytes;
} two_memory;

typedef struct {
    two_memory dtcm; /* 8 bytes, aligned to 16, in memory 'dtcm' */
    two_memory isram; /* 0 bytes, aligned to 16, in memory 'isram' */
} two_workspaces;

/* Owned by the caller, zeroed before the first use; its members are private. */
typedef struct {
    uint8_t *dtcm;
    uint8_t *isram;
} two_context;

extern const uint8_t two_flash_parameters[TWO_FLASH_PARAMETERS_SIZE];

/* Lends the workspaces to the context until the next call. Refuses memory that is NULL, too small,
 * misaligned, overlapping, or outside of the target's memory; then the context is as it was. */
int32_t two_set_workspaces(two_context *context, const two_workspaces *workspaces);

/* Runs one inference. Outputs and workspaces share no bytes with each other, with inputs, with parameters,
 * or with what the arguments point to. Inputs are not changed.
 * At most TWO_STACK_SIZE bytes of stack are used.
 * Nothing is global and mutable: contexts of their own may run in threads of their own. */
int32_t two_run(two_context *context, const two_inputs *inputs, const two_outputs *outputs);

#ifdef __cplusplus
}
#endif

#endif /* TWO_H */
