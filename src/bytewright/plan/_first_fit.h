/* First fit for many buffers: the native counterpart of plan/first_fit.py. */
#ifndef BYTEWRIGHT_PLAN_FIRST_FIT_H
#define BYTEWRIGHT_PLAN_FIRST_FIT_H

#include <stdint.h>

/* A whole problem with all its pools, as FlatProblem lays it out; rows as in _exact.h. */
typedef struct {
    int32_t num_buffers;
    int32_t num_pools;
    const int64_t *size;             /* [num_buffers]; buffers of 0 bytes coexist with nobody */
    const int64_t *fixed;            /* [num_buffers], -1 if the buffer may move */
    const int64_t *lifetime_row;     /* [num_buffers + 1] */
    const int64_t *lifetime;         /* pairs lower, upper: disjoint, ascending; rows count pairs */
    const int64_t *choice_row;       /* [num_buffers + 1] */
    const int32_t *choice_pool;      /* preferred first */
    const int64_t *choice_alignment; /* beside choice_pool */
    const int64_t *capacity;         /* [num_pools] */
    const int64_t *base;             /* [num_pools] */
    const int64_t *contract_row;     /* [num_buffers + 1] */
    const int32_t *contract_other;
    const int64_t *contract_above;   /* least offset(other) - offset(b), other above */
    const int64_t *contract_below;   /* least offset(b) - offset(other), other below */
} first_fit_problem;

/* Which buffers coexist, in compressed rows. Where there are more than FIRST_FIT_MAX_PAIRS, `neighbour` holds none, and
 * placing looks through what is placed instead. */
typedef struct {
    int64_t *row;
    int32_t *neighbour;
    int is_dense;
} first_fit_pairs;
enum { FIRST_FIT_MAX_PAIRS = 1 << 23 };

/* Returns 0, or -1 if there is not enough memory. The caller frees `row` and `neighbour` in both cases. */
int first_fit_find_pairs(const first_fit_problem *problem, first_fit_pairs *pairs);

/* Places the buffers in the given order, each in the first of its pools that has room, at the lowest free offset.
 * Writes a pool (-1: none) and an offset for each. Returns 0, or -1 if there is not enough memory. */
int first_fit_place(const first_fit_problem *problem, const first_fit_pairs *pairs, const int32_t *order,
                    int32_t *pools, int64_t *offsets);

#endif
