/* The harness's view of a bundle: one session, bound to memory that the caller owns.
 *
 * "harness_model.h" is generated for each bundle and is a table of facts: what the bundle's own names begin with
 * (HARNESS_MODEL(run) is kws_run), which members the model's structs have and how large their buffers are, as lists of
 * the form  #define HARNESS_INPUTS(ENTRY) ENTRY(0, input_1, 490)
 *
 * HARNESS_CALL is one run, of all entries of the model or of the one that the session has chosen.
 */
#ifndef BYTEWRIGHT_HARNESS_H
#define BYTEWRIGHT_HARNESS_H

#include <stddef.h>
#include <stdint.h>

#include "harness_model.h"

/* Guards before and after each workspace that the harness declares, in a paranoid run; they keep it aligned. */
#if HARNESS_PARANOID
#define HARNESS_GUARD_BYTES(alignment) ((alignment) > HARNESS_PARANOID ? (size_t)(alignment) : (size_t)HARNESS_PARANOID)
#else
#define HARNESS_GUARD_BYTES(alignment) ((size_t)0)
#endif

/* For what a run of the model may write besides the workspaces and its stack: a board may protect everything else. */
#ifndef HARNESS_WRITABLE
#define HARNESS_WRITABLE
#endif

/* What workspaces are filled with before the first inference: a read of bytes that nobody wrote shows. */
#define HARNESS_WORKSPACE_FILL 0xA5

typedef struct {
    HARNESS_MODEL(context) *context;
    int32_t keeps_state; /* each run goes on from where the last one ended; else all begin alike */
    int32_t entry;       /* the one that runs; all in their order if below 0 */
    void *input_buffers[HARNESS_NUM_INPUTS + 1];
    void *output_buffers[HARNESS_NUM_OUTPUTS + 1];
#define HARNESS_STRUCTURE(name) HARNESS_MODEL(name) name;
    HARNESS_STRUCTURES(HARNESS_STRUCTURE) /* those that the entries are given */
} harness_session;

/* What compilers of the GNU dialect are told. HARNESS_EXPORT is what Python finds in the library of the host, all else of
 * which is hidden, so that the compiler may inline it.
 */
#ifdef __GNUC__
#define HARNESS_EXPORT __attribute__((visibility("default")))
#define HARNESS_USED __attribute__((used))
#define HARNESS_NORETURN __attribute__((noreturn))
#else
#define HARNESS_EXPORT
#define HARNESS_USED
#define HARNESS_NORETURN
#endif

/* The bytes of an array for an input or output, up to the end of its last cache line where that must be its own. */
#define HARNESS_WHOLE_LINES(size_bytes) \
    (((size_bytes) + HARNESS_IO_LINE_BYTES - 1) / HARNESS_IO_LINE_BYTES * HARNESS_IO_LINE_BYTES)

/* Sizes in the order of the tables; one more element than needed, so that an empty table is no empty array. */
HARNESS_EXPORT extern const size_t harness_workspace_size_bytes[HARNESS_NUM_WORKSPACES + 1];
HARNESS_EXPORT extern const size_t harness_workspace_alignment[HARNESS_NUM_WORKSPACES + 1];
extern const size_t harness_copy_size_bytes[HARNESS_NUM_COPIES + 1];
extern const size_t harness_copy_alignment[HARNESS_NUM_COPIES + 1];

/* Zeroes the context and hands over workspaces, parameter blobs, and the memory that blobs are copied to. What survives
 * runs begins as before the first. Returns the model's status.
 */
HARNESS_EXPORT int32_t harness_set_up(harness_session *session, HARNESS_MODEL(context) *context, void *const *workspaces,
                                      const void *const *blobs, void *const *copies);

/* Whether runs go on from where the last one ended. */
HARNESS_EXPORT void harness_keep_state(harness_session *session, int32_t keeps_state);

/* Chooses the entry of the next runs, by its number; all of them in their order if it is below 0. */
HARNESS_EXPORT void harness_choose(harness_session *session, int32_t entry);

/* What survives runs is as before the first one. Returns the model's status. */
HARNESS_EXPORT int32_t harness_reset_state(harness_session *session);

/* The bytes of inputs and outputs in a run with these extents; one element for each tensor. */
void harness_sizes(const int32_t *extents, size_t *input_bytes, size_t *output_bytes);

/* Before each run: points the model's structs at the buffers, one pointer per tensor. */
void harness_bind(harness_session *session, void *const *inputs, void *const *outputs);

/* Where inputs and outputs lie in the workspace: copies the inputs of an entry to there, before each run, because the last
 * one may have overwritten them; and after it the outputs to the buffers.
 */
void harness_copy_in(const harness_session *session, int32_t entry, const int32_t *extents);
void harness_copy_out(const harness_session *session, int32_t entry, const int32_t *extents);

#if HARNESS_NUM_DEVICES > 0
/* The drivers of the other devices that the model uses. */
extern const HARNESS_MODEL(devices) harness_devices;
#endif

#ifdef HARNESS_ROWS
/* One run of a model that is given its image row by row: all of it, in several pieces. Returns the model's status. */
int32_t harness_push_all(HARNESS_MODEL(context) *context, const HARNESS_MODEL(outputs) *outputs, const void *image);
#endif

#if HARNESS_NUM_ENTRIES > 1
/* One run of a model of several entries: of the chosen one, or of all, with what is copied between them. */
int32_t harness_run_entries(const harness_session *session, const int32_t *extents);
#endif

/* One run of the model, with the extents that it is given. Returns its status. */
int32_t harness_run(const harness_session *session, const int32_t *extents);

/* The same, measured as the machine can: nanoseconds, or bytes of stack. */
int32_t harness_run_measured(harness_session *session, const int32_t *extents, int64_t *measured);

HARNESS_EXPORT extern const size_t harness_session_size_bytes;
HARNESS_EXPORT extern const size_t harness_context_size_bytes;
/* One inference, num_repetitions times; `measured` has one element for each. Returns the model's status. */
HARNESS_EXPORT int32_t harness_repeat(harness_session *session, void *const *inputs, void *const *outputs,
                                      const int32_t *extents, size_t num_repetitions, int64_t *measured);

#ifdef HARNESS_STEP_CLOCK
/* After each run whose steps are timed: when it began and ended, by the clock of the steps. */
void harness_keep_run(int64_t began_at, int64_t ended_at);
#endif

#endif
