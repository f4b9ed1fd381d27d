/* Reads the clock between the kernels while a model runs on the host.
 *
 * Writes steps.bin: for each run the number of its marks, when it began and when it ended, and the marks, each a step and
 * when it was come to; all are int64_t, and times are in nanoseconds. The model's own number of steps is the mark after
 * the last one.
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

void harness_keep_run(int64_t began_at, int64_t ended_at)
{
    const int64_t head[3] = {(int64_t)num_marks, began_at, ended_at};

    if (file == NULL) {
        file = fopen("steps.bin", "wb");
    }
    if (file == NULL || fwrite(head, sizeof head, 1, file) != 1 || fwrite(marks, sizeof *marks, num_marks, file) != num_marks ||
        fflush(file) != 0) {
        stop("cannot write the times of the steps");
    }
    num_marks = 0;
}
