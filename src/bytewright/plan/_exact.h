/* The native core of the planner: plain C99, no Python, no allocation but at the start of a call. */
#ifndef BYTEWRIGHT_PLAN_EXACT_H
#define BYTEWRIGHT_PLAN_EXACT_H

#include <stdint.h>

/* One pool's buffers, as plan/instance.py lays them out. Lists are in compressed rows: those of buffer b are
 * entries row[b] .. row[b + 1] - 1. */
typedef struct {
    int32_t num_buffers;
    int32_t num_sections;
    int32_t num_orders;
    int32_t has_contracts;        /* whether any separation differs from the lower buffer's size */
    int32_t num_levels;           /* alignments at which bytes are lost, at most EXACT_MAX_LEVELS */
    const int64_t *size;          /* [num_buffers], at least 1 */
    const int64_t *room;          /* [num_buffers]: with levels, the size rounded up to the buffer's alignment */
    const int64_t *alignment;     /* [num_buffers], powers of two */
    const int64_t *fixed;         /* [num_buffers], -1 if the buffer may move */
    const int64_t *neighbour_row; /* [num_buffers + 1] */
    const int32_t *neighbour;     /* coexisting buffers, ascending in each row */
    const int64_t *gap_above;     /* beside neighbour: least offset(neighbour) - offset(b), neighbour above */
    const int64_t *gap_below;     /* beside neighbour: least offset(b) - offset(neighbour), neighbour below */
    const int64_t *shared;        /* beside neighbour: how many bytes the pair may have in common */
    const int64_t *section_row;   /* [num_buffers + 1] */
    const int32_t *section;       /* sections the buffer is alive in, ascending */
    const int32_t *orders;        /* [num_orders][num_buffers]: buffers, preferred first */
    const int64_t *level;         /* [num_levels], powers of two above 1 */
    int64_t base;                 /* address of offset 0, modulo the largest alignment */
} exact_instance;

enum { EXACT_MAX_LEVELS = 64 };
enum { EXACT_UNKNOWN = 0, EXACT_SOLVED = 1, EXACT_INFEASIBLE = 2, EXACT_NO_MEMORY = 3 };

/* Called every EXACT_POLL_NODES nodes with the number visited so far; returns nonzero to stop the search. */
typedef int (*exact_poll)(void *context, int64_t num_nodes);
enum { EXACT_POLL_NODES = 1 << 16 };

/* Looks for offsets with every buffer ending at or below `capacity`. Visits at most `node_budget` nodes, and none once
 * it has looked at `work_budget` items (buffers, neighbours, sections) in its loops. Writes `offsets` if it returns
 * EXACT_SOLVED, and always the number of nodes and of items. `poll` may be null. */
int exact_search(const exact_instance *instance, int64_t capacity, int64_t node_budget, int64_t work_budget,
                 exact_poll poll, void *context, int64_t *offsets, int64_t *num_nodes, int64_t *work);

#endif
