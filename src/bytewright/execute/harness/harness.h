/* The harness's view of a bundle: one session, bound to memory that the caller owns.
 *
 * "harness_model.h" is generated for each bundle and is a table only: which members the model's structs have
 * and how large their buffers are, as lists of the form  #define HARNESS_INPUTS(ENTRY) ENTRY(0, input_1, 490)
 */
#ifndef BYTEWRIGHT_HARNESS_H
#define BYTEWRIGHT_HARNESS_H

#include <stddef.h>
#include <stdint.h>

#include "harness_model.h"

/* What workspaces are filled with before the first inference: a read of bytes that nobody wrote shows. */
#define HARNESS_WORKSPACE_FILL 0xA5

typedef struct {
    HARNESS_CONTEXT_TYPE context;
    HARNESS_INPUTS_TYPE inputs;
    HARNESS_OUTPUTS_TYPE outputs;
} harness_session;

/* Sizes in the order of the tables; one more element than needed, so that an empty table is no empty array. */
extern const size_t harness_input_size_bytes[HARNESS_NUM_INPUTS + 1];
extern const size_t harness_output_size_bytes[HARNESS_NUM_OUTPUTS + 1];
extern const size_t harness_workspace_size_bytes[HARNESS_NUM_WORKSPACES + 1];
extern const size_t harness_workspace_alignment[HARNESS_NUM_WORKSPACES + 1];

/* Zeroes the context and hands over workspaces and parameter blobs. Returns the model's status. */
int32_t harness_set_up(harness_session *session, void *const *workspaces, const void *const *blobs);

/* Points the model's input and output structs at buffers, one pointer per tensor. */
void harness_bind(harness_session *session, void *const *inputs, void *const *outputs);

#endif
