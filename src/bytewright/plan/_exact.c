/* The exact search: offsets for one pool's buffers below a capacity, or proof that there are none.
 *
 * docs/planner.md explains the method and why each cut is sound; plan/search.py is the same search in Python,
 * statement by statement, and visits the same nodes. Buffers are placed in non-decreasing (offset, index),
 * each at its lowest possible offset; `index` is the position in the order of the current run.
 */
#include "_exact.h"

#include <stdlib.h>
#include <string.h>

enum { TABLE_BITS = 16, TABLE_SIZE = 1 << TABLE_BITS };
enum { RELEASES_PER_BUFFER = 64 };
enum { FIRST_LIMIT = 8 }; /* nodes per buffer in the first round */
enum { MAX_BLOCKS = 32 }; /* of memory that a search takes */
enum { UNDO_MINIMUM, UNDO_LATE, UNDO_RELEASE, UNDO_PLACE };

static const int64_t FAR = INT64_MAX;

typedef struct {
    int64_t old;
    int32_t buffer;
    int32_t kind;
} undo_entry;

typedef struct {
    uint64_t key;
    uint64_t check;
    int64_t offset;
    int64_t index;
} table_entry;

typedef struct {
    const exact_instance *in;
    exact_poll poll;
    void *poll_context;
    int64_t capacity;
    int64_t node_budget; /* of the whole call */
    int64_t node_limit;  /* of the present run, in the same count */
    int64_t num_nodes;
    int64_t work, work_budget; /* items looked at, and how many may be */
    /* By buffer. `minimum` is the lowest offset that the placed neighbours leave; with contracts a buffer may
     * also be allowed exactly at the frontier while everything above it up to `late` is forbidden. `release` is
     * what inference knows about the final offset, never below `minimum`. */
    int64_t *minimum, *late, *release, *offset, *reach;
    int32_t *index;
    uint8_t *placed;
    uint64_t *salt;
    int32_t *first_section, *last_section;
    int32_t *items;      /* buffers; the unplaced ones of a part are a contiguous stretch */
    int32_t *scratch;    /* as long, for sorting */
    int32_t *bucket;     /* by section, for sorting */
    int64_t *heaviest;   /* by buffer: the largest weight of its sections */
    int64_t *mark;       /* by buffer, for contracts */
    int64_t mark_stamp;
    /* By section. Members are the unplaced buffers, in no order that matters. */
    int64_t *member_row;
    int32_t *member;
    int32_t *num_members;
    int64_t *load;
    int64_t *cut;        /* unplaced buffers alive both in this section and the one before */
    int64_t *weight;
    int32_t *dirty;
    int64_t *dirty_stamp;
    int32_t num_dirty;
    int64_t stamp;
    undo_entry *trail;
    int64_t trail_length;
    int64_t num_releases, max_releases;
    table_entry *table;
    void *blocks[MAX_BLOCKS]; /* what all of these lie in */
    int num_blocks, is_short;
} search;

static int64_t align_up(const search *s, int32_t buffer, int64_t offset)
{
    int64_t low_bits = s->in->alignment[buffer] - 1;
    return ((offset + s->in->base + low_bits) & ~low_bits) - s->in->base;
}

static void join_sections(search *s, int32_t b)
{
    const exact_instance *in = s->in;
    for (int64_t k = in->section_row[b]; k < in->section_row[b + 1]; k++) {
        int64_t t = in->section[k];
        s->member[s->member_row[t] + s->num_members[t]++] = b;
        s->load[t] += in->room[b];
    }
    for (int32_t t = s->first_section[b] + 1; t <= s->last_section[b]; t++)
        s->cut[t]++;
}

static void undo_to(search *s, int64_t length)
{
    while (s->trail_length > length) {
        undo_entry *entry = &s->trail[--s->trail_length];
        int32_t b = entry->buffer;
        if (entry->kind == UNDO_MINIMUM) {
            s->minimum[b] = entry->old;
        } else if (entry->kind == UNDO_LATE) {
            s->late[b] = entry->old;
        } else if (entry->kind == UNDO_RELEASE) {
            s->release[b] = entry->old;
            s->num_releases--;
        } else {
            s->placed[b] = 0;
            join_sections(s, b);
        }
    }
}

static void push(search *s, int32_t buffer, int32_t kind, int64_t old)
{
    undo_entry *entry = &s->trail[s->trail_length++];
    entry->buffer = buffer;
    entry->kind = kind;
    entry->old = old;
}

/* The lowest offset the buffer can be placed at now, given that nothing goes below the frontier any more. */
static int64_t lowest(const search *s, int32_t buffer, int64_t frontier)
{
    if (!s->in->has_contracts || s->in->fixed[buffer] >= 0 || s->minimum[buffer] == frontier)
        return s->minimum[buffer];
    return s->late[buffer];
}

/* A buffer that is behind the frontier must be lifted by an unplaced neighbour that gets in its way. Returns the
 * least offset it can then have, or FAR if nothing can lift it. */
static int64_t bumped(search *s, int32_t b, int64_t at, int64_t frontier)
{
    const exact_instance *in = s->in;
    int64_t best = FAR;
    s->work += in->neighbour_row[b + 1] - in->neighbour_row[b];
    for (int64_t k = in->neighbour_row[b]; k < in->neighbour_row[b + 1]; k++) {
        int32_t x = in->neighbour[k];
        if (s->placed[x])
            continue;
        int64_t top_of_b = in->size[b], top_of_x = in->size[x], x_at;
        if (in->has_contracts) {
            top_of_b = in->gap_above[k];
            top_of_x = in->gap_below[k];
            x_at = s->minimum[x];
        } else {
            x_at = s->release[x];
        }
        if (x_at < frontier)
            x_at = frontier;
        if (x_at < at + top_of_b && x_at + top_of_x < best)
            best = x_at + top_of_x;
    }
    return best == FAR ? FAR : align_up(s, b, best);
}

/* What the buffer adds to the union of the marked ones of its section. */
static int64_t net_size(search *s, int32_t b)
{
    const exact_instance *in = s->in;
    int64_t size = in->size[b];
    if (!in->has_contracts)
        return size;
    s->work += in->neighbour_row[b + 1] - in->neighbour_row[b];
    for (int64_t k = in->neighbour_row[b]; k < in->neighbour_row[b + 1]; k++)
        if (in->shared[k] > 0 && s->mark[in->neighbour[k]] == s->mark_stamp)
            size -= in->shared[k];
    if (size <= 0)
        return 0;
    s->mark[b] = s->mark_stamp;
    return size;
}

/* Sorts by release, then buffer, descending. Members stay nearly sorted from node to node. */
static void sort_members(search *s, int32_t *member, int32_t count)
{
    for (int32_t i = 1; i < count; i++) {
        int32_t b = member[i], j = i;
        int64_t r = s->release[b];
        for (; j > 0; j--) {
            int64_t other = s->release[member[j - 1]];
            if (other > r || (other == r && member[j - 1] > b))
                break;
            member[j] = member[j - 1];
        }
        member[j] = b;
        s->work += i - j;
    }
}

/* What alignment wastes among buffers of one section, for each level of `in->level`: see docs/planner.md. */
typedef struct {
    int64_t losses, largest, residues, num_odd; /* as in plan/waste.py */
} waste;

/* Adds a buffer to the waste at an alignment; returns the least number of bytes wasted so far. */
static int64_t add_waste(waste *w, int64_t size, int64_t alignment, int64_t level)
{
    int64_t residue = size & (level - 1);
    if (alignment >= level) {
        int64_t loss = residue ? level - residue : 0;
        w->losses += loss;
        w->largest = loss > w->largest ? loss : w->largest;
    } else if (residue) {
        w->residues += residue;
        w->num_odd++;
    }
    int64_t filled = w->residues;
    if (w->num_odd > 0 && w->largest <= w->residues / w->num_odd)
        filled = w->num_odd * w->largest;
    return w->losses - w->largest - filled;
}

/* Whether the section's unplaced buffers can still end below the capacity: for every release r, those released
 * no earlier need above r the union of their bytes, and so do some of which no two share bytes, with what alignment
 * wastes between them. */
static int section_fits(search *s, int32_t t)
{
    const exact_instance *in = s->in;
    int32_t *member = s->member + s->member_row[t];
    int32_t count = s->num_members[t];
    int64_t least = FAR, greatest = 0;
    for (int32_t i = 0; i < count; i++) {
        int64_t r = s->release[member[i]];
        least = r < least ? r : least;
        greatest = r > greatest ? r : greatest;
    }
    s->work += count;
    if (greatest + s->load[t] <= s->capacity)
        return 1;
    if (!in->has_contracts && !in->num_levels && least + s->load[t] > s->capacity)
        return 0;
    sort_members(s, member, count);
    s->work += (int64_t)count * (1 + in->num_levels);
    s->mark_stamp++;
    waste levels[EXACT_MAX_LEVELS];
    memset(levels, 0, (size_t)in->num_levels * sizeof *levels);
    int64_t sum = 0, apart = 0, wasted = 0;
    for (int32_t i = 0; i < count; i++) {
        int32_t b = member[i];
        int64_t net = net_size(s, b);
        sum += net;
        if (net == in->size[b]) { /* shares nothing with those before it that do not either */
            apart += net;
            wasted = 0;
            for (int32_t k = 0; k < in->num_levels; k++) {
                int64_t more = add_waste(&levels[k], in->size[b], in->alignment[b], in->level[k]);
                wasted = more > wasted ? more : wasted;
            }
        }
        int64_t need = sum > apart + wasted ? sum : apart + wasted;
        if (s->release[b] + need > s->capacity)
            return 0;
    }
    return 1;
}

static uint64_t mix(uint64_t value)
{
    value ^= value >> 31;
    value *= UINT64_C(0x9E3779B97F4A7C15);
    value ^= value >> 29;
    value *= UINT64_C(0xBF58476D1CE4E5B9);
    return value ^ (value >> 32);
}

typedef struct {
    uint64_t key;
    uint64_t check;
    int64_t threshold; /* some unplaced buffer fits entirely below this offset */
} node_facts;

/* Brings releases up to date and checks the sections they concern. Returns whether the node may have a plan. */
static int infer(search *s, int32_t begin, int32_t end, int64_t frontier, int64_t frontier_index, node_facts *facts)
{
    const exact_instance *in = s->in;
    s->num_dirty = 0;
    s->stamp++;
    facts->key = facts->check = 0;
    facts->threshold = FAR;
    for (int32_t i = begin; i < end; i++) {
        int32_t b = s->items[i];
        int64_t r = lowest(s, b, frontier);
        if (r + s->reach[b] < facts->threshold)
            facts->threshold = r + s->reach[b];
        uint64_t h = mix((uint64_t)s->minimum[b] + s->salt[b]);
        if (in->has_contracts)
            h = mix(h + (uint64_t)s->late[b]);
        facts->key += h;
        facts->check += mix(h ^ UINT64_C(0xD6E8FEB86659FD93));
        if (r < frontier || (r == frontier && s->index[b] < frontier_index)) {
            r = in->fixed[b] >= 0 ? FAR : bumped(s, b, r, frontier);
            if (r == FAR)
                return 0;
        } else if (r > frontier && s->minimum[b] < frontier) {
            r = frontier; /* with contracts: another buffer may still lift it to just there */
        }
        if (r > s->release[b] && s->num_releases < s->max_releases) {
            push(s, b, UNDO_RELEASE, s->release[b]);
            s->num_releases++;
            s->release[b] = r;
            s->work += in->section_row[b + 1] - in->section_row[b];
            for (int64_t k = in->section_row[b]; k < in->section_row[b + 1]; k++) {
                int64_t t = in->section[k];
                if (s->dirty_stamp[t] != s->stamp) {
                    s->dirty_stamp[t] = s->stamp;
                    s->dirty[s->num_dirty++] = (int32_t)t;
                }
            }
        }
    }
    const table_entry *entry = &s->table[facts->key & (TABLE_SIZE - 1)];
    if (entry->key == facts->key && entry->check == facts->check &&
        (entry->offset < frontier || (entry->offset == frontier && entry->index <= frontier_index)))
        return 0;
    for (int32_t i = 0; i < s->num_dirty; i++) {
        if (!section_fits(s, s->dirty[i])) {
            s->weight[s->dirty[i]]++;
            return 0;
        }
    }
    return 1;
}

/* The next buffer in (offset, index) after the given pair: its place in `items`, or -1. */
static int32_t next_candidate(const search *s, int32_t begin, int32_t end, int64_t frontier, int64_t offset,
                              int64_t index)
{
    int32_t best = -1;
    int64_t best_offset = FAR, best_index = FAR;
    for (int32_t i = begin; i < end; i++) {
        int32_t b = s->items[i];
        int64_t at = lowest(s, b, frontier);
        if (at < offset || at > best_offset || (at == offset && s->index[b] <= index))
            continue;
        if (at < best_offset || s->index[b] < best_index) {
            best = i;
            best_offset = at;
            best_index = s->index[b];
        }
    }
    return best;
}

/* Takes the buffer out of its sections. Returns whether time falls apart at one of them. */
static int leave_sections(search *s, int32_t b)
{
    const exact_instance *in = s->in;
    int split = 0;
    for (int64_t k = in->section_row[b]; k < in->section_row[b + 1]; k++) {
        int64_t t = in->section[k];
        int32_t *member = s->member + s->member_row[t];
        int32_t i = 0;
        while (member[i] != b)
            i++;
        int32_t count = --s->num_members[t];
        memmove(member + i, member + i + 1, (size_t)(count - i) * sizeof *member);
        s->load[t] -= in->room[b];
    }
    for (int32_t t = s->first_section[b] + 1; t <= s->last_section[b]; t++)
        if (--s->cut[t] == 0)
            split = 1;
    return split;
}

/* With contracts: what the placed neighbours leave a buffer at the frontier itself, where those may be beside it that
 * are there, too. That is of use up to the frontier; else `late` counts, where all of them lift it. */
static int64_t lowest_beside(search *s, int32_t b, int64_t frontier)
{
    const exact_instance *in = s->in;
    int64_t found = in->fixed[b] >= 0 ? in->fixed[b] : align_up(s, b, 0);
    s->work += in->neighbour_row[b + 1] - in->neighbour_row[b];
    for (int64_t k = in->neighbour_row[b]; k < in->neighbour_row[b + 1]; k++) {
        int32_t x = in->neighbour[k];
        if (!s->placed[x] || (s->offset[x] == frontier && in->gap_above[k] == 0))
            continue;
        int64_t lifted = align_up(s, b, s->offset[x] + in->gap_below[k]);
        found = lifted > found ? lifted : found;
    }
    return found <= frontier ? found : s->late[b];
}

/* Places the buffer and lifts its neighbours. Returns the number of unplaced neighbours, or -1 if one of them is
 * fixed and would have to move. */
static int32_t place(search *s, int32_t b, int64_t at, int *split)
{
    const exact_instance *in = s->in;
    int32_t num_unplaced = 0;
    s->placed[b] = 1;
    s->offset[b] = at;
    push(s, b, UNDO_PLACE, 0);
    s->work += in->neighbour_row[b + 1] - in->neighbour_row[b] + s->last_section[b] - s->first_section[b] + 1;
    *split = leave_sections(s, b);
    for (int64_t k = in->neighbour_row[b]; k < in->neighbour_row[b + 1]; k++) {
        int32_t y = in->neighbour[k];
        if (s->placed[y])
            continue;
        num_unplaced++;
        int64_t lifted = align_up(s, y, at + (in->has_contracts ? in->gap_above[k] : in->size[b]));
        if (in->has_contracts) {
            if (lifted > s->late[y]) {
                push(s, y, UNDO_LATE, s->late[y]);
                s->late[y] = lifted;
            }
            lifted = s->late[y] > at ? lowest_beside(s, y, at) : s->late[y];
        }
        if (lifted <= s->minimum[y])
            continue;
        if (in->fixed[y] >= 0 && lifted > in->fixed[y])
            return -1;
        push(s, y, UNDO_MINIMUM, s->minimum[y]);
        s->minimum[y] = lifted;
    }
    return num_unplaced;
}

static int solve_part(search *s, int32_t begin, int32_t end, int64_t frontier, int64_t frontier_index);

/* Sorts the stretch by first section and solves each part that shares no section with the next. */
static int solve_split(search *s, int32_t begin, int32_t end, int64_t frontier, int64_t frontier_index)
{
    int32_t low = INT32_MAX, high = -1;
    for (int32_t i = begin; i < end; i++) {
        int32_t first = s->first_section[s->items[i]];
        low = first < low ? first : low;
        high = first > high ? first : high;
    }
    if (high < 0)
        return EXACT_SOLVED;
    s->work += end - begin + high - low + 1;
    memset(s->bucket + low, 0, (size_t)(high - low + 1) * sizeof *s->bucket);
    for (int32_t i = begin; i < end; i++)
        s->bucket[s->first_section[s->items[i]]]++;
    int32_t sum = 0;
    for (int32_t t = low; t <= high; t++) {
        int32_t count = s->bucket[t];
        s->bucket[t] = sum;
        sum += count;
    }
    for (int32_t i = begin; i < end; i++)
        s->scratch[s->bucket[s->first_section[s->items[i]]]++] = s->items[i];
    memcpy(s->items + begin, s->scratch, (size_t)(end - begin) * sizeof *s->items);
    for (int32_t start = begin; start < end;) {
        int32_t reaches = s->last_section[s->items[start]];
        int32_t stop = start + 1;
        for (; stop < end && s->first_section[s->items[stop]] <= reaches; stop++)
            if (s->last_section[s->items[stop]] > reaches)
                reaches = s->last_section[s->items[stop]];
        int result = solve_part(s, start, stop, frontier, frontier_index);
        if (result != EXACT_SOLVED)
            return result;
        start = stop;
    }
    return EXACT_SOLVED;
}

/* Places items[begin .. end - 1], none before (frontier, frontier_index). On failure everything is as it was. */
static int solve_part(search *s, int32_t begin, int32_t end, int64_t frontier, int64_t frontier_index)
{
    if (begin == end)
        return EXACT_SOLVED;
    if (s->num_nodes >= s->node_limit || s->work >= s->work_budget)
        return EXACT_UNKNOWN;
    s->num_nodes++;
    s->work += end - begin;
    if (s->poll && s->num_nodes % EXACT_POLL_NODES == 0 && s->poll(s->poll_context, s->num_nodes)) {
        s->node_limit = s->node_budget = 0;
        return EXACT_UNKNOWN;
    }
    int64_t length_on_entry = s->trail_length;
    node_facts facts;
    if (!infer(s, begin, end, frontier, frontier_index, &facts)) {
        undo_to(s, length_on_entry);
        return EXACT_INFEASIBLE;
    }
    int64_t length = s->trail_length, offset = frontier, index = frontier_index;
    for (;;) {
        int32_t i = next_candidate(s, begin, end, frontier, offset, index);
        s->work += end - begin;
        if (i < 0)
            break;
        int32_t b = s->items[i];
        offset = lowest(s, b, frontier);
        index = s->index[b];
        if (offset >= facts.threshold)
            break;
        if (offset + s->in->size[b] > s->capacity)
            continue; /* with contracts, where it might have stayed lower */
        s->items[i] = s->items[end - 1];
        s->items[end - 1] = b;
        int split;
        int32_t num_unplaced = place(s, b, offset, &split);
        if (num_unplaced >= 0) {
            int64_t next_index = s->in->has_contracts ? -1 : index;
            int result = split ? solve_split(s, begin, end - 1, offset, next_index)
                               : solve_part(s, begin, end - 1, offset, next_index);
            if (result != EXACT_INFEASIBLE)
                return result;
        }
        undo_to(s, length);
        if (num_unplaced == 0)
            break;
    }
    undo_to(s, length_on_entry);
    table_entry *entry = &s->table[facts.key & (TABLE_SIZE - 1)];
    entry->key = facts.key;
    entry->check = facts.check;
    entry->offset = frontier;
    entry->index = frontier_index;
    return EXACT_INFEASIBLE;
}

/* Sorts `items` by weight, descending, equals as they stand: a stable merge sort. */
static void order_by_weight(search *s)
{
    const exact_instance *in = s->in;
    int32_t n = in->num_buffers, *items = s->items;
    int64_t *heaviest = s->heaviest;
    for (int32_t b = 0; b < n; b++) {
        heaviest[b] = 0;
        for (int64_t k = in->section_row[b]; k < in->section_row[b + 1]; k++)
            if (s->weight[in->section[k]] > heaviest[b])
                heaviest[b] = s->weight[in->section[k]];
    }
    for (int32_t width = 1; width < n; width = width > n / 2 ? n : 2 * width) {
        for (int32_t low = 0; low < n;) {
            int32_t middle = n - low > width ? low + width : n;
            int32_t high = n - middle > width ? middle + width : n;
            int32_t i = low, j = middle;
            for (int32_t k = low; k < high; k++) {
                int first_half = i < middle && (j >= high || heaviest[items[i]] >= heaviest[items[j]]);
                s->scratch[k] = first_half ? items[i++] : items[j++];
            }
            low = high;
        }
        memcpy(items, s->scratch, (size_t)n * sizeof *items);
    }
}

/* Makes every buffer unplaced, with `items` as the order. */
static void start(search *s)
{
    const exact_instance *in = s->in;
    s->trail_length = 0;
    s->num_releases = 0;
    memset(s->num_members, 0, (size_t)in->num_sections * sizeof *s->num_members);
    memset(s->load, 0, (size_t)in->num_sections * sizeof *s->load);
    memset(s->cut, 0, (size_t)in->num_sections * sizeof *s->cut);
    for (int32_t i = 0; i < in->num_buffers; i++) {
        int32_t b = s->items[i];
        s->index[b] = i;
        s->salt[b] = mix(((uint64_t)(uint32_t)b << 32) + (uint64_t)(uint32_t)i + 1);
    }
    for (int32_t b = 0; b < in->num_buffers; b++) {
        s->placed[b] = 0;
        s->minimum[b] = s->late[b] = in->fixed[b] >= 0 ? in->fixed[b] : align_up(s, b, 0);
        s->release[b] = -1;
        join_sections(s, b);
    }
    s->work += in->num_buffers + in->section_row[in->num_buffers];
}

static void prepare(search *s)
{
    const exact_instance *in = s->in;
    for (int32_t b = 0; b < in->num_buffers; b++) {
        s->first_section[b] = (int32_t)in->section[in->section_row[b]];
        s->last_section[b] = (int32_t)in->section[in->section_row[b + 1] - 1];
        s->reach[b] = in->size[b];
        if (in->has_contracts)
            for (int64_t k = in->neighbour_row[b]; k < in->neighbour_row[b + 1]; k++)
                if (in->gap_above[k] > s->reach[b])
                    s->reach[b] = in->gap_above[k];
        for (int64_t k = in->section_row[b]; k < in->section_row[b + 1]; k++)
            s->member_row[in->section[k] + 1]++;
    }
    for (int32_t t = 0; t < in->num_sections; t++)
        s->member_row[t + 1] += s->member_row[t];
}

/* Runs each order as it is and then behind the weights learned so far, every run under a limit that doubles from
 * round to round. */
static int run_portfolio(search *s)
{
    const exact_instance *in = s->in;
    int32_t n = in->num_buffers;
    for (int64_t limit = FIRST_LIMIT * (int64_t)n;; limit *= 2) {
        for (int32_t run = 0; run < 2 * in->num_orders; run++) {
            memcpy(s->items, in->orders + (int64_t)(run / 2) * n, (size_t)n * sizeof *s->items);
            if (run % 2 == 1)
                order_by_weight(s);
            start(s);
            int64_t left = s->node_budget - s->num_nodes;
            s->node_limit = s->num_nodes + (left < limit ? left : limit);
            int result = solve_split(s, 0, n, 0, -1);
            if (result != EXACT_UNKNOWN || s->num_nodes >= s->node_budget || s->work >= s->work_budget)
                return result;
        }
    }
}

/* Zeroed memory; `is_short` says if there was too little. */
static void *take(search *s, int64_t count, size_t size)
{
    void *block = calloc((size_t)count, size);
    s->is_short |= block == NULL;
    s->blocks[s->num_blocks++] = block;
    return block;
}

int exact_search(const exact_instance *in, int64_t capacity, int64_t node_budget, int64_t work_budget, exact_poll poll,
                 void *context, int64_t *offsets, int64_t *num_nodes, int64_t *work)
{
    *num_nodes = *work = 0;
    if (in->num_buffers == 0)
        return EXACT_SOLVED;
    search s = {.in = in,
                .poll = poll,
                .poll_context = context,
                .capacity = capacity,
                .node_budget = node_budget,
                .work_budget = work_budget};
    int64_t n = in->num_buffers, m = in->num_sections + 1, pairs = in->neighbour_row[n];
    s.max_releases = pairs + RELEASES_PER_BUFFER * n;
    s.minimum = take(&s, n, sizeof *s.minimum);
    s.late = take(&s, n, sizeof *s.late);
    s.release = take(&s, n, sizeof *s.release);
    s.offset = take(&s, n, sizeof *s.offset);
    s.reach = take(&s, n, sizeof *s.reach);
    s.index = take(&s, n, sizeof *s.index);
    s.placed = take(&s, n, sizeof *s.placed);
    s.salt = take(&s, n, sizeof *s.salt);
    s.first_section = take(&s, n, sizeof *s.first_section);
    s.last_section = take(&s, n, sizeof *s.last_section);
    s.items = take(&s, n, sizeof *s.items);
    s.scratch = take(&s, n, sizeof *s.scratch);
    s.bucket = take(&s, m, sizeof *s.bucket);
    s.heaviest = take(&s, n, sizeof *s.heaviest);
    s.mark = take(&s, n, sizeof *s.mark);
    s.member_row = take(&s, m, sizeof *s.member_row);
    s.member = take(&s, in->section_row[n], sizeof *s.member);
    s.num_members = take(&s, m, sizeof *s.num_members);
    s.load = take(&s, m, sizeof *s.load);
    s.cut = take(&s, m, sizeof *s.cut);
    s.weight = take(&s, m, sizeof *s.weight);
    s.dirty = take(&s, m, sizeof *s.dirty);
    s.dirty_stamp = take(&s, m, sizeof *s.dirty_stamp);
    s.trail = take(&s, s.max_releases + (in->has_contracts ? 2 * pairs : pairs) + n, sizeof *s.trail);
    s.table = take(&s, TABLE_SIZE, sizeof *s.table);
    int result = EXACT_NO_MEMORY;
    if (!s.is_short) {
        prepare(&s);
        result = run_portfolio(&s);
        *num_nodes = s.num_nodes;
        *work = s.work;
    }
    if (result == EXACT_SOLVED)
        memcpy(offsets, s.offset, (size_t)n * sizeof *offsets);
    while (s.num_blocks > 0)
        free(s.blocks[--s.num_blocks]);
    return result;
}
