/* Reads the clock between the kernels while a model runs on the host.
 *
 * Writes steps.bin: pairs of int64_t, what is come to and when, in nanoseconds. That is a step by its number, -1 for the
 * begin of a run, or -2 for its end. The model's own number of steps is the step after the last one.
 */
#define _POSIX_C_SOURCE 199309L

#include "harness_step.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "harness.h"

typedef struct {
    int64_t step;
    int64_t nanoseconds;
} mark;

static mark *marks;
static size_t num_marks;
static size_t most_marks;
static FILE *file;

static void stop(const char *what)
{
    fprintf(stderr, "harness: %s\n", what);
    exit(1);
}

void harness_step(unsigned int step)
{
    struct timespec now;

    if (num_marks == most_marks) { /* in the first runs alone */
        most_marks = most_marks == 0 ? 1024 : 2 * most_marks;
        marks = realloc(marks, most_marks * sizeof *marks);
        if (marks == NULL) {
            stop("out of memory");
        }
    }
    clock_gettime(CLOCK_MONOTONIC, &now);
    marks[num_marks].step = (int64_t)step;
    marks[num_marks].nanoseconds = (int64_t)now.tv_sec * 1000000000 + (int64_t)now.tv_nsec;
    ++num_marks;
}

static int write_pair(int64_t what, int64_t nanoseconds)
{
    const int64_t pair[2] = {what, nanoseconds};

    return fwrite(pair, sizeof pair, 1, file) == 1;
}

void harness_keep_run(int64_t began_at, int64_t ended_at)
{
    if (file == NULL) {
        file = fopen("steps.bin", "wb");
    }
    if (file == NULL || !write_pair(-1, began_at) || fwrite(marks, sizeof *marks, num_marks, file) != num_marks ||
        !write_pair(-2, ended_at) || fflush(file) != 0) {
        stop("cannot write the times of the steps");
    }
    num_marks = 0;
}
