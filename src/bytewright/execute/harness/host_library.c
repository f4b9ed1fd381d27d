/* The harness as a shared library: what Python calls, and nothing else, is exported. */
#define _POSIX_C_SOURCE 199309L

#include "harness.h"

#include <time.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT size_t bytewright_session_size_bytes(void);
EXPORT size_t bytewright_workspace_size_bytes(size_t index);
EXPORT size_t bytewright_workspace_alignment(size_t index);
EXPORT int32_t bytewright_set_up(void *session, void *const *workspaces, const void *const *blobs,
                                 void *const *copies);
EXPORT int32_t bytewright_run(void *session, void *const *inputs, void *const *outputs, const int32_t *extents,
                              size_t num_repetitions, int64_t *nanoseconds);

size_t bytewright_session_size_bytes(void)
{
    return sizeof(harness_session);
}

size_t bytewright_workspace_size_bytes(size_t index)
{
    return harness_workspace_size_bytes[index];
}

size_t bytewright_workspace_alignment(size_t index)
{
    return harness_workspace_alignment[index];
}

int32_t bytewright_set_up(void *session, void *const *workspaces, const void *const *blobs, void *const *copies)
{
    return harness_set_up(session, workspaces, blobs, copies);
}

/* Runs the same inputs num_repetitions times; nanoseconds has one element for each. */
int32_t bytewright_run(void *session, void *const *inputs, void *const *outputs, const int32_t *extents,
                       size_t num_repetitions, int64_t *nanoseconds)
{
    harness_session *const bound = session;

    for (size_t repetition = 0; repetition < num_repetitions; ++repetition) {
        struct timespec before;
        struct timespec after;
        int32_t status;

        harness_bind(bound, inputs, outputs, extents);
        clock_gettime(CLOCK_MONOTONIC, &before);
        status = harness_run(bound, extents);
        clock_gettime(CLOCK_MONOTONIC, &after);
        if (status < 0) {
            return status;
        }
        nanoseconds[repetition] =
            (int64_t)(after.tv_sec - before.tv_sec) * 1000000000 + (int64_t)(after.tv_nsec - before.tv_nsec);
    }
    harness_collect(bound, outputs, extents);
    return 0;
}
