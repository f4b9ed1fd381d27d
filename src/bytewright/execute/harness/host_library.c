/* The harness on the host: all of it that Python calls as a shared library, and the timed runs of host_main.c. */
#define _POSIX_C_SOURCE 199309L

#include "harness.h"

#include <time.h>

const size_t harness_session_size_bytes = sizeof(harness_session);

int32_t harness_repeat(harness_session *session, void *const *inputs, void *const *outputs, const int32_t *extents,
                       size_t num_repetitions, int64_t *nanoseconds)
{
    for (size_t repetition = 0; repetition < num_repetitions; ++repetition) {
        struct timespec before;
        struct timespec after;
        int32_t status;

        harness_bind(session, inputs, outputs, extents);
        clock_gettime(CLOCK_MONOTONIC, &before);
        status = harness_run(session, extents);
        clock_gettime(CLOCK_MONOTONIC, &after);
        if (status < 0) {
            return status;
        }
        nanoseconds[repetition] =
            (int64_t)(after.tv_sec - before.tv_sec) * 1000000000 + (int64_t)(after.tv_nsec - before.tv_nsec);
    }
    harness_collect(session, outputs, extents);
    return 0;
}
