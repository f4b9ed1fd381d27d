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

#define PASS_EXTENT(index) , extents[index]

#if HARNESS_IO_IN_WORKSPACE
#define BIND_INPUT(index, member, size_bytes) \
    memcpy(HARNESS_MODEL(input_##member)(session->context), inputs[index], input_bytes[index]);
#define BIND_OUTPUT(index, member, size_bytes)
#define COLLECT_OUTPUT(index, member, size_bytes) \
    memcpy(outputs[index], HARNESS_MODEL(output_##member)(session->context), output_bytes[index]);
#define PASS_IO
#else
#if HARNESS_INPUT_ROWS
#define BIND_INPUT(index, member, size_bytes) session->image = inputs[index];
#else
#define BIND_INPUT(index, member, size_bytes) session->inputs.member = inputs[index];
#endif
#define BIND_OUTPUT(index, member, size_bytes) session->outputs.member = outputs[index];
#define COLLECT_OUTPUT(index, member, size_bytes)
#define PASS_IO , &session->inputs, &session->outputs
#endif

void harness_bind(harness_session *session, void *const *inputs, void *const *outputs, const int32_t *extents)
{
    size_t input_bytes[HARNESS_NUM_INPUTS + 1];
    size_t output_bytes[HARNESS_NUM_OUTPUTS + 1];

    (void)session;
    (void)inputs;
    (void)outputs;
    harness_sizes(extents, input_bytes, output_bytes);
    HARNESS_INPUTS(BIND_INPUT)
    HARNESS_OUTPUTS(BIND_OUTPUT)
}

#if HARNESS_NUM_DEVICES > 0
#define PASS_DEVICES , &harness_devices
#else
#define PASS_DEVICES
#endif

#if HARNESS_INPUT_ROWS
int32_t harness_push_all(HARNESS_MODEL(context) *context, const HARNESS_MODEL(outputs) *outputs, const void *image)
{
    const unsigned char *row = image;
    int32_t num_left = HARNESS_INPUT_ROWS;
    int32_t status = HARNESS_MODEL(begin)(context, outputs);

    while (status >= 0 && num_left > 0) {
        /* So many as a byte of the image says, from 1 to 7 or all: every image comes in pieces of its own. */
        const int32_t wanted = 1 + *row % 8;
        const int32_t num_rows = wanted == 8 || wanted > num_left ? num_left : wanted;

        status = HARNESS_MODEL(push_rows)(context, (const void *)row, num_rows);
        row += (size_t)num_rows * HARNESS_ROW_BYTES;
        num_left -= num_rows;
    }
    return status < 0 ? status : HARNESS_MODEL(finish)(context PASS_DEVICES);
}

int32_t harness_run(harness_session *session, const int32_t *extents)
{
    (void)extents;
    return harness_push_all(session->context, &session->outputs, session->image);
}
#else

int32_t harness_run(harness_session *session, const int32_t *extents)
{
    (void)extents;
    return HARNESS_MODEL(run)(session->context PASS_IO HARNESS_EXTENTS(PASS_EXTENT) PASS_DEVICES);
}
#endif

void harness_collect(const harness_session *session, void *const *outputs, const int32_t *extents)
{
    size_t input_bytes[HARNESS_NUM_INPUTS + 1];
    size_t output_bytes[HARNESS_NUM_OUTPUTS + 1];

    (void)session;
    (void)outputs;
    harness_sizes(extents, input_bytes, output_bytes);
    HARNESS_OUTPUTS(COLLECT_OUTPUT)
}

int32_t harness_repeat(harness_session *session, void *const *inputs, void *const *outputs, const int32_t *extents,
                       size_t num_repetitions, int64_t *measured)
{
    for (size_t repetition = 0; repetition < num_repetitions; ++repetition) {
        int32_t status = session->keeps_state ? 0 : RESET(session->context);

        harness_bind(session, inputs, outputs, extents);
        if (status >= 0) {
            status = harness_run_measured(session, extents, &measured[repetition]);
        }
        if (status < 0) {
            return status;
        }
    }
    harness_collect(session, outputs, extents);
    return 0;
}
