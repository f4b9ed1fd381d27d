/* The harness on the host: all of it that Python calls as a shared library, and its timed runs. */
#define _POSIX_C_SOURCE 199309L

#include "harness.h"

#include <time.h>

const size_t harness_session_size_bytes = sizeof(harness_session);
const size_t harness_context_size_bytes = sizeof(HARNESS_MODEL(context));

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

int32_t harness_run_measured(harness_session *session, const int32_t *extents, int64_t *measured)
{
    struct timespec before;
    struct timespec after;
    int32_t status;

    clock_gettime(CLOCK_MONOTONIC, &before);
    harness_measure_begin();
    status = harness_run(session, extents);
    harness_measure_end();
    clock_gettime(CLOCK_MONOTONIC, &after);
    *measured = in_nanoseconds(after) - in_nanoseconds(before);
#ifdef HARNESS_STEP_CLOCK
    harness_keep_run(in_nanoseconds(before), in_nanoseconds(after));
#endif
    return status;
}
