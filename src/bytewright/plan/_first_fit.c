/* First fit, natively: what plan/first_fit.py does, for problems of a hundred thousand buffers. */
#include "_first_fit.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    int64_t key;
    int32_t buffer;
} keyed;

typedef struct {
    int64_t low, high; /* offsets strictly between the two are taken */
} taken;

static int compare_keyed(const void *first, const void *second)
{
    const keyed *a = first, *b = second;
    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    return a->buffer < b->buffer ? -1 : a->buffer > b->buffer;
}

static int compare_taken(const void *first, const void *second)
{
    const taken *a = first, *b = second;
    if (a->low != b->low)
        return a->low < b->low ? -1 : 1;
    return a->high < b->high ? -1 : a->high > b->high;
}

static int64_t first_tick(const first_fit_problem *p, int32_t b)
{
    return p->lifetime[2 * p->lifetime_row[b]];
}

static int64_t last_tick(const first_fit_problem *p, int32_t b)
{
    return p->lifetime[2 * p->lifetime_row[b + 1] - 1];
}

static int coexist(const first_fit_problem *p, int32_t a, int32_t b)
{
    int64_t i = p->lifetime_row[a], j = p->lifetime_row[b];
    while (i < p->lifetime_row[a + 1] && j < p->lifetime_row[b + 1]) {
        const int64_t *x = p->lifetime + 2 * i, *y = p->lifetime + 2 * j;
        if (x[0] < y[1] && y[0] < x[1])
            return 1;
        if (x[1] <= y[0])
            i++;
        else
            j++;
    }
    return 0;
}

/* Goes over all coexisting pairs; counts them in `row`, or writes them at the positions that `row` says. Returns how
 * many there are, and stops early if that is more than FIRST_FIT_MAX_PAIRS. */
static int64_t sweep(const first_fit_problem *p, const keyed *by_start, int32_t count, int64_t *row, int32_t *neighbour)
{
    int64_t found = 0;
    for (int32_t i = 0; i < count; i++) {
        int32_t a = by_start[i].buffer;
        int64_t end = last_tick(p, a);
        for (int32_t j = i + 1; j < count && by_start[j].key < end; j++) {
            int32_t b = by_start[j].buffer;
            if (!coexist(p, a, b))
                continue;
            if (neighbour) {
                neighbour[row[a]] = b;
                neighbour[row[b]] = a;
            }
            row[a]++;
            row[b]++;
            if (++found > FIRST_FIT_MAX_PAIRS)
                return found;
        }
    }
    return found;
}

int first_fit_find_pairs(const first_fit_problem *p, first_fit_pairs *pairs)
{
    size_t n = (size_t)p->num_buffers;
    keyed *by_start = malloc((n + 1) * sizeof *by_start);
    pairs->row = calloc(n + 2, sizeof *pairs->row);
    pairs->neighbour = NULL;
    pairs->is_dense = 0;
    if (by_start && pairs->row) {
        int32_t count = 0;
        for (int32_t b = 0; b < p->num_buffers; b++) {
            if (p->size[b] > 0) {
                by_start[count].key = first_tick(p, b);
                by_start[count++].buffer = b;
            }
        }
        qsort(by_start, (size_t)count, sizeof *by_start, compare_keyed);
        /* Counts go two places up, starts one place up; writing then moves each start to where its row ends. */
        if (sweep(p, by_start, count, pairs->row + 2, NULL) > FIRST_FIT_MAX_PAIRS) {
            pairs->is_dense = 1;
            memset(pairs->row, 0, (n + 2) * sizeof *pairs->row);
            count = 0;
        }
        for (size_t b = 0; b < n; b++)
            pairs->row[b + 2] += pairs->row[b + 1];
        pairs->neighbour = malloc(((size_t)pairs->row[n + 1] + 1) * sizeof *pairs->neighbour);
        if (pairs->neighbour)
            sweep(p, by_start, count, pairs->row + 1, pairs->neighbour);
    }
    free(by_start);
    return pairs->neighbour ? 0 : -1;
}

static int64_t align_up(int64_t offset, int64_t alignment, int64_t base)
{
    return ((offset + base + alignment - 1) & ~(alignment - 1)) - base;
}

static taken taken_by(const first_fit_problem *p, int32_t b, int32_t other, int64_t at)
{
    taken result = {at - p->size[b], at + p->size[other]};
    for (int64_t k = p->contract_row[b]; k < p->contract_row[b + 1]; k++) {
        if (p->contract_other[k] == other) {
            result.low = at - p->contract_above[k];
            result.high = at + p->contract_below[k];
        }
    }
    return result;
}

/* A buffer that is placed, with what is asked of it again and again. */
typedef struct {
    int64_t offset, first, last;
    int32_t buffer, pool;
} resident;

/* Where residents stand in order of offset: after all that are no higher. */
static int32_t position_of(const resident *residents, int32_t count, int64_t offset)
{
    int32_t low = 0, high = count;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (residents[middle].offset <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void settle(const first_fit_problem *p, resident *residents, int32_t count, int32_t b, int32_t pool,
                   int64_t offset)
{
    int32_t at = position_of(residents, count, offset);
    memmove(residents + at + 1, residents + at, (size_t)(count - at) * sizeof *residents);
    residents[at].offset = offset;
    residents[at].first = first_tick(p, b);
    residents[at].last = last_tick(p, b);
    residents[at].buffer = b;
    residents[at].pool = pool;
}

static int is_neighbour(const first_fit_problem *p, const resident *r, int32_t b, int32_t pool)
{
    if (r->pool != pool || r->first >= last_tick(p, b) || first_tick(p, b) >= r->last)
        return 0;
    int32_t other = r->buffer;
    int have_one_life = p->lifetime_row[b + 1] - p->lifetime_row[b] == 1 &&
                        p->lifetime_row[other + 1] - p->lifetime_row[other] == 1;
    return have_one_life || coexist(p, other, b);
}

/* The lowest free offset of a buffer without a fixed one and without contracts, looking through the residents in order
 * of offset. What they forbid begins in that order, too, so that the first gap that is met is the lowest. */
static int64_t lowest_gap(const first_fit_problem *p, const resident *residents, int32_t count, int32_t b,
                          int64_t choice)
{
    int32_t pool = p->choice_pool[choice];
    int64_t alignment = p->choice_alignment[choice], base = p->base[pool], size = p->size[b];
    int64_t offset = align_up(0, alignment, base);
    for (int32_t i = 0; i < count && residents[i].offset - size < offset; i++) {
        int64_t top = residents[i].offset + p->size[residents[i].buffer];
        if (offset < top && is_neighbour(p, &residents[i], b, pool))
            offset = align_up(top, alignment, base);
    }
    return offset;
}

/* What the placed neighbours of a buffer forbid to it in a pool; returns how many there are. */
static size_t collect(const first_fit_problem *p, const first_fit_pairs *pairs, int32_t b, int32_t pool,
                      const int32_t *pools, const int64_t *offsets, const resident *residents, int32_t num_residents,
                      taken *scratch)
{
    size_t count = 0;
    for (int64_t k = pairs->row[b]; k < pairs->row[b + 1]; k++) {
        int32_t other = pairs->neighbour[k];
        if (pools[other] == pool)
            scratch[count++] = taken_by(p, b, other, offsets[other]);
    }
    for (int32_t i = 0; i < num_residents; i++)
        if (is_neighbour(p, &residents[i], b, pool))
            scratch[count++] = taken_by(p, b, residents[i].buffer, residents[i].offset);
    return count;
}

/* The lowest free offset of the buffer in the pool, or -1 if its fixed offset is taken. */
static int64_t lowest_offset(const first_fit_problem *p, int32_t b, int64_t choice, taken *scratch, size_t count)
{
    int32_t pool = p->choice_pool[choice];
    if (p->fixed[b] >= 0) {
        for (size_t i = 0; i < count; i++)
            if (scratch[i].low < p->fixed[b] && p->fixed[b] < scratch[i].high)
                return -1;
        return p->fixed[b];
    }
    qsort(scratch, count, sizeof *scratch, compare_taken);
    int64_t offset = align_up(0, p->choice_alignment[choice], p->base[pool]);
    for (size_t i = 0; i < count && scratch[i].low < offset; i++)
        if (offset < scratch[i].high)
            offset = align_up(scratch[i].high, p->choice_alignment[choice], p->base[pool]);
    return offset;
}

int first_fit_place(const first_fit_problem *p, const first_fit_pairs *pairs, const int32_t *order, int32_t *pools,
                    int64_t *offsets)
{
    int64_t most = pairs->is_dense ? p->num_buffers : 0;
    int32_t num_residents = 0;
    for (int32_t b = 0; b < p->num_buffers; b++) {
        int64_t count = pairs->row[b + 1] - pairs->row[b];
        most = count > most ? count : most;
        pools[b] = -1;
        offsets[b] = 0;
    }
    taken *scratch = malloc(((size_t)most + 1) * sizeof *scratch);
    resident *residents = malloc((pairs->is_dense ? (size_t)p->num_buffers + 1 : 1) * sizeof *residents);
    if (!scratch || !residents) {
        free(scratch);
        free(residents);
        return -1;
    }
    for (int pass = 0; pass < 2; pass++) { /* fixed buffers first */
        for (int32_t i = 0; i < p->num_buffers; i++) {
            int32_t b = order[i];
            if ((p->fixed[b] >= 0) != (pass == 0))
                continue;
            for (int64_t c = p->choice_row[b]; c < p->choice_row[b + 1]; c++) {
                int32_t pool = p->choice_pool[c];
                int is_plain = p->fixed[b] < 0 && p->contract_row[b] == p->contract_row[b + 1];
                int64_t offset;
                if (p->size[b] == 0)
                    offset = lowest_offset(p, b, c, scratch, 0);
                else if (pairs->is_dense && is_plain)
                    offset = lowest_gap(p, residents, num_residents, b, c);
                else
                    offset = lowest_offset(p, b, c, scratch,
                                           collect(p, pairs, b, pool, pools, offsets, residents, num_residents, scratch));
                if (offset >= 0 && offset + p->size[b] <= p->capacity[p->choice_pool[c]]) {
                    pools[b] = p->choice_pool[c];
                    offsets[b] = offset;
                    if (pairs->is_dense && p->size[b] > 0)
                        settle(p, residents, num_residents++, b, pool, offset);
                    break;
                }
            }
        }
    }
    free(scratch);
    free(residents);
    return 0;
}
