/* The harness on the host: all of it that Python calls as a shared library, and the timed runs of host_main.c. */
#define _POSIX_C_SOURCE 199309L

#include "harness.h"

#include <time.h>

const size_t harness_session_size_bytes = sizeof(harness_session);

#ifdef HARNESS_COUNTED
/* Where an emulator's count begins and ends: calls that no compiler takes away. */
__attribute__((noinline)) void harness_measure_begin(void)
{
    __asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) void harness_measure_end(void)
{
    __asm__ volatile("" ::: "memory");
}
#else
#define harness_measure_begin() (void)0
#define harness_measure_end() (void)0
#endif

static int64_t in_nanoseconds(struct timespec time)
{
    return (int64_t)time.tv_sec * 1000000000 + (int64_t)time.tv_nsec;
}

int32_t harness_repeat(harness_session *session, void *const *inputs, void *const *outputs, const int32_t *extents,
                       size_t num_repetitions, int64_t *nanoseconds)
{
    for (size_t repetition = 0; repetition < num_repetitions; ++repetition) {
        struct timespec before;
        struct timespec after;
        int32_t status;

        harness_bind(session, inputs, outputs, extents);
        clock_gettime(CLOCK_MONOTONIC, &before);
        harness_measure_begin();
        status = harness_run(session, extents);
        harness_measure_end();
        clock_gettime(CLOCK_MONOTONIC, &after);
        if (status < 0) {
            return status;
        }
        nanoseconds[repetition] = in_nanoseconds(after) - in_nanoseconds(before);
#ifdef HARNESS_STEP_CLOCK
        harness_keep_run(in_nanoseconds(before), in_nanoseconds(after));
#endif
    }
    harness_collect(session, outputs, extents);
    return 0;
}
