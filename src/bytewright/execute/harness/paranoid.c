/* Watches the workspaces while a model runs. Between kernels, bytes that the plan calls dead are poisoned; after
 * each kernel, every byte that the plan does not let it write must be what it was: poison, buffers that live on,
 * and the guards before and after each pool.
 *
 * "harness_paranoid.h" is generated for each bundle: its pools, and three tables of ranges. An offset in a table
 * counts from the first guard byte of its pool. The third is about loops over rows: for a certain call of a step, the
 * bytes that are dead before it, and those that it may not change, in the order of the calls.
 */
#include "harness_paranoid.h"

#include <string.h>

#include "harness_step.h"
#include "port.h"

typedef struct {
    size_t guard_bytes;
    size_t all_bytes;
    unsigned char *shadow;
} watched_pool;

typedef struct {
    uint32_t step;
    uint32_t pool;
    uint32_t first;
    uint32_t end;
} byte_range;

typedef struct {
    uint32_t step;
    uint32_t call;
    uint32_t pool;
    uint32_t first;
    uint32_t end;
    uint32_t is_still;
} row_range;

/* Two poisons in turn, so that one of them changes whatever depends on it. */
static const unsigned char poisons[2] = {0xA5, 0x5A};

#define DECLARE_SHADOW(index, guard_bytes, all_bytes) \
    static unsigned char shadow_##index[all_bytes] HARNESS_WRITABLE;
PARANOID_POOLS(DECLARE_SHADOW)

#define POOL(index, guard_bytes, all_bytes) {guard_bytes, all_bytes, shadow_##index},
#define RANGE(step, pool, first, end) {step, pool, first, end},
#define ROWS(step, call, pool, first, end, is_still) {step, call, pool, first, end, is_still},
#define END(index) index,
static const watched_pool watched_pools[] = {PARANOID_POOLS(POOL)};
static const byte_range dead_ranges[] = {PARANOID_DEAD(RANGE){UINT32_MAX, 0, 0, 0}};
static const byte_range still_ranges[] = {PARANOID_STILL(RANGE){UINT32_MAX, 0, 0, 0}};
static const row_range row_ranges[] = {PARANOID_ROWS(ROWS){UINT32_MAX, 0, 0, 0, 0, 0}};
static const uint32_t row_ends[HARNESS_NUM_ENTRIES] = {PARANOID_ROW_ENDS(END)}; /* of each entry's ranges of rows */

enum { NUM_POOLS = sizeof watched_pools / sizeof *watched_pools };
enum { NUM_DEAD = sizeof dead_ranges / sizeof *dead_ranges - 1 };
enum { NUM_STILL = sizeof still_ranges / sizeof *still_ranges - 1 };
enum { NUM_ROWS = sizeof row_ranges / sizeof *row_ranges - 1 };
enum { MOST_FINDINGS = 16 };

/* `current` is the step that runs, if one does: in a loop steps come again, and a branch leaves some out. Of the ranges
 * of rows, those from `row_first` to before `row_end` are about the call that runs. */
static struct {
    uint32_t num_runs;
    uint32_t current;
    int is_running;
    uint32_t row_first;
    uint32_t row_end;
    uint32_t num_calls[PARANOID_NUM_STEPS + HARNESS_NUM_ENTRIES]; /* a number more behind each entry */
    uint32_t num_findings;
    uint32_t findings[MOST_FINDINGS][3];
} watch HARNESS_WRITABLE;

static void check(size_t index, byte_range range, unsigned char *const *pools)
{
    const unsigned char *const pool = pools[range.pool] - watched_pools[range.pool].guard_bytes;
    const unsigned char *const shadow = watched_pools[range.pool].shadow;
    uint32_t first = range.first;
    uint32_t end = range.end;

    if (memcmp(pool + first, shadow + first, end - first) == 0 || watch.num_findings == MOST_FINDINGS) {
        return;
    }
    while (pool[first] == shadow[first]) {
        ++first;
    }
    while (pool[end - 1] == shadow[end - 1]) {
        --end;
    }
    watch.findings[watch.num_findings][0] = (uint32_t)index;
    watch.findings[watch.num_findings][1] = first;
    watch.findings[watch.num_findings][2] = end;
    ++watch.num_findings;
}

/* Ends a run after a step that changed what it may not: nothing that follows would mean anything. */
static void end_run(void)
{
#if HARNESS_NUM_REGIONS > 0
    harness_unprotect();
#endif
    for (uint32_t index = 0; index < watch.num_findings; ++index) {
        harness_report("finding_range", watch.findings[index][0]);
        harness_report("finding_first", watch.findings[index][1]);
        harness_report("finding_end", watch.findings[index][2]);
    }
    port_exit(HARNESS_VIOLATED);
}

void harness_step(unsigned int step, unsigned char *const *pools)
{
    const int is_first = watch.is_running == 0;

    watch.num_runs += (uint32_t)is_first;
    /* One for all entries of an inference, which run in their order. */
    const unsigned char poison = poisons[(watch.num_runs + HARNESS_NUM_ENTRIES - 1) / HARNESS_NUM_ENTRIES % 2];
    const uint32_t entry = (watch.num_runs - 1) % HARNESS_NUM_ENTRIES;
    for (size_t index = 0; index < NUM_STILL; ++index) {
        if (!is_first && still_ranges[index].step == watch.current) {
            check(index, still_ranges[index], pools);
        }
    }
    for (size_t index = watch.row_first; !is_first && index < watch.row_end; ++index) {
        const row_range rows = row_ranges[index];
        if (rows.is_still) {
            check(NUM_STILL + index, (byte_range){rows.step, rows.pool, rows.first, rows.end}, pools);
        }
    }
    if (is_first) {
        memset(watch.num_calls, 0, sizeof watch.num_calls);
        watch.row_end = entry == 0 ? 0 : watch.row_end;
    }
    if (step >= PARANOID_NUM_STEPS && watch.row_end != row_ends[entry] && watch.num_findings == 0) {
        watch.findings[watch.num_findings++][0] = NUM_STILL + NUM_ROWS + entry; /* some call of it never came */
    }
    if (watch.num_findings != 0) {
        end_run();
    }
    for (size_t index = 0; index < NUM_DEAD; ++index) {
        if (dead_ranges[index].step == step) {
            const byte_range range = dead_ranges[index];
            memset(pools[range.pool] - watched_pools[range.pool].guard_bytes + range.first, poison,
                   range.end - range.first);
        }
    }
    watch.row_first = watch.row_end;
    while (watch.row_end < NUM_ROWS && row_ranges[watch.row_end].step == step &&
           row_ranges[watch.row_end].call == watch.num_calls[step]) {
        const row_range rows = row_ranges[watch.row_end++];
        if (!rows.is_still) {
            memset(pools[rows.pool] - watched_pools[rows.pool].guard_bytes + rows.first, poison,
                   rows.end - rows.first);
        }
    }
    ++watch.num_calls[step];
    watch.current = step;
    watch.is_running = step < PARANOID_NUM_STEPS;
    for (size_t index = 0; index < NUM_POOLS; ++index) {
        memcpy(watched_pools[index].shadow, pools[index] - watched_pools[index].guard_bytes,
               watched_pools[index].all_bytes);
    }
}
