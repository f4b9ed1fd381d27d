/* Maps arrays of pointers to the members of the model's structs, by the tables of harness_model.h. */
#include "harness.h"

#include <string.h>

#define WORKSPACE_SIZE(index, member, size_bytes, alignment, section) [index] = (size_bytes),
#define WORKSPACE_ALIGNMENT(index, member, size_bytes, alignment, section) [index] = (alignment),
#define SET_MEMORY(memory, address, size) \
    memory.base = (address);              \
    memory.size_bytes = (size);

const size_t harness_workspace_size_bytes[HARNESS_NUM_WORKSPACES + 1] = {
    HARNESS_WORKSPACES(WORKSPACE_SIZE)[HARNESS_NUM_WORKSPACES] = 0};
const size_t harness_workspace_alignment[HARNESS_NUM_WORKSPACES + 1] = {
    HARNESS_WORKSPACES(WORKSPACE_ALIGNMENT)[HARNESS_NUM_WORKSPACES] = 0};
const size_t harness_copy_size_bytes[HARNESS_NUM_COPIES + 1] = {HARNESS_COPIES(WORKSPACE_SIZE)[HARNESS_NUM_COPIES] = 0};
const size_t harness_copy_alignment[HARNESS_NUM_COPIES + 1] = {
    HARNESS_COPIES(WORKSPACE_ALIGNMENT)[HARNESS_NUM_COPIES] = 0};

#if HARNESS_HAS_STATES
#define RESET(context) HARNESS_MODEL(reset)(context)
#else
#define RESET(context) 0
#endif

int32_t harness_set_up(harness_session *session, HARNESS_MODEL(context) *context, void *const *workspaces,
                       const void *const *blobs, void *const *copies)
{
    int32_t status = 0;

    memset(context, 0, sizeof *context);
    session->context = context;
    session->keeps_state = 0;
    session->entry = -1;
#if HARNESS_NUM_WORKSPACES > 0
    {
        HARNESS_MODEL(workspaces) memories;
#define SET_WORKSPACE(index, member, size, alignment, section) SET_MEMORY(memories.member, workspaces[index], size)
        HARNESS_WORKSPACES(SET_WORKSPACE)
        status = HARNESS_MODEL(set_workspaces)(context, &memories);
        if (status < 0) {
            return status;
        }
    }
#else
    (void)workspaces;
#endif
#if HARNESS_NUM_BLOBS > 0
    {
        HARNESS_MODEL(parameters) parameters;
#define SET_BLOB(index, member, path, alignment, section) parameters.member = blobs[index];
        HARNESS_BLOBS(SET_BLOB)
#define SET_COPY(index, member, size, alignment, section) SET_MEMORY(parameters.member, copies[index], size)
        HARNESS_COPIES(SET_COPY)
        status = HARNESS_MODEL(set_parameters)(context, &parameters);
    }
#elif HARNESS_HAS_OWN_COPIES
    status = HARNESS_MODEL(set_parameters)(context);
#endif
    (void)blobs;
    (void)copies;
    return status < 0 ? status : RESET(context);
}

void harness_keep_state(harness_session *session, int32_t keeps_state)
{
    session->keeps_state = keeps_state;
}

void harness_choose(harness_session *session, int32_t entry)
{
    session->entry = entry;
}

int32_t harness_reset_state(harness_session *session)
{
    (void)session;
    return RESET(session->context);
}

void harness_sizes(const int32_t *extents, size_t *input_bytes, size_t *output_bytes)
{
    (void)extents;
    (void)input_bytes;
    (void)output_bytes;
#define INPUT_BYTES(index, size) input_bytes[index] = (size);
    HARNESS_INPUT_SIZES(INPUT_BYTES)
#define OUTPUT_BYTES(index, size) output_bytes[index] = (size);
    HARNESS_OUTPUT_SIZES(OUTPUT_BYTES)
}

void harness_bind(harness_session *session, void *const *inputs, void *const *outputs)
{
    memcpy(session->input_buffers, inputs, HARNESS_NUM_INPUTS * sizeof inputs[0]);
    memcpy(session->output_buffers, outputs, HARNESS_NUM_OUTPUTS * sizeof outputs[0]);
#define BIND(tensors, index, member) session->member = session->tensors[index];
    HARNESS_MEMBERS(BIND)
}

#define COPY_INPUT(own_entry, index, member)                                                         \
    if (entry == (own_entry)) {                                                                      \
        memcpy(HARNESS_MODEL(input_##member)(session->context), session->input_buffers[index], input_bytes[index]); \
    }
#define COPY_OUTPUT(own_entry, index, member)                                                            \
    if (entry == (own_entry)) {                                                                          \
        memcpy(session->output_buffers[index], HARNESS_MODEL(output_##member)(session->context), output_bytes[index]); \
    }

void harness_copy_in(const harness_session *session, int32_t entry, const int32_t *extents)
{
    size_t input_bytes[HARNESS_NUM_INPUTS + 1];
    size_t output_bytes[HARNESS_NUM_OUTPUTS + 1];

    (void)session;
    (void)entry;
    harness_sizes(extents, input_bytes, output_bytes);
    HARNESS_PLANNED_INPUTS(COPY_INPUT)
}

void harness_copy_out(const harness_session *session, int32_t entry, const int32_t *extents)
{
    size_t input_bytes[HARNESS_NUM_INPUTS + 1];
    size_t output_bytes[HARNESS_NUM_OUTPUTS + 1];

    (void)session;
    (void)entry;
    harness_sizes(extents, input_bytes, output_bytes);
    HARNESS_PLANNED_OUTPUTS(COPY_OUTPUT)
}

#ifdef HARNESS_ROWS
#if HARNESS_NUM_DEVICES > 0
#define PASS_DEVICES , &harness_devices
#else
#define PASS_DEVICES
#endif

int32_t harness_push_all(HARNESS_MODEL(context) *context, const HARNESS_MODEL(outputs) *outputs, const void *image)
{
    const unsigned char *row = image;
    int32_t num_left = HARNESS_ROWS;
    int32_t status = HARNESS_MODEL(begin)(context, outputs);

    while (status >= 0 && num_left > 0) {
        /* So many as a byte of the image says, from 1 to 7 or all: every image comes in pieces of its own. */
        const int32_t wanted = 1 + *row % 8;
        const int32_t num_rows = wanted == 8 || wanted > num_left ? num_left : wanted;

        status = HARNESS_MODEL(push_rows)(context, (const void *)row, num_rows);
        row += (size_t)num_rows * HARNESS_ROW_SIZE;
        num_left -= num_rows;
    }
    return status < 0 ? status : HARNESS_MODEL(finish)(context PASS_DEVICES);
}
#endif

#if HARNESS_NUM_ENTRIES > 1
int32_t harness_run_entries(const harness_session *session, const int32_t *extents)
{
    int32_t status = 0;

#define RUN_ENTRY(index, call)                                                      \
    if (status >= 0 && (session->entry < 0 || session->entry == (index))) {         \
        harness_copy_in(session, (index), extents);                                 \
        status = call;                                                              \
        if (status >= 0) {                                                          \
            harness_copy_out(session, (index), extents);                            \
        }                                                                           \
    }
    HARNESS_ENTRIES(RUN_ENTRY)
    return status;
}
#endif

int32_t harness_run(const harness_session *session, const int32_t *extents)
{
    (void)extents;
    return HARNESS_CALL;
}

int32_t harness_repeat(harness_session *session, void *const *inputs, void *const *outputs, const int32_t *extents,
                       size_t num_repetitions, int64_t *measured)
{
    harness_bind(session, inputs, outputs);
    for (size_t repetition = 0; repetition < num_repetitions; ++repetition) {
        int32_t status = session->keeps_state ? 0 : RESET(session->context);

        if (HARNESS_NUM_ENTRIES == 1) { /* several overwrite what the others are given */
            harness_copy_in(session, 0, extents);
        }
        if (status >= 0) {
            status = harness_run_measured(session, extents, &measured[repetition]);
        }
        if (status < 0) {
            return status;
        }
    }
    if (HARNESS_NUM_ENTRIES == 1) {
        harness_copy_out(session, 0, extents);
    }
    return 0;
}
