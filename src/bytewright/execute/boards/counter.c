/* A QEMU TCG plugin: executed instructions, and memory traffic, between two addresses of the guest.
 *
 * Counting starts when the instruction at `begin` executes, which is not counted itself, and ends before the
 * one at `end`. Blocks are counted as a whole: in a guest without interrupts a block that was entered is
 * executed to its end. What a second core does for that is counted for itself, between two addresses of its own: each
 * time from `second_begin`, not counted either, to before `second_end`. Debian ships no plugin header; the few functions used are declared here, from the
 * documented interface (QEMU, docs/devel/tcg-plugins): they kept their signatures from interface 1 to 4.
 *
 * Arguments: begin=ADDRESS end=ADDRESS [second_begin=ADDRESS second_end=ADDRESS] out=FILE [steps=FILE] [range=FIRST:LAST]...;
 * with ranges, loads and stores are attributed to the first range that holds the address, or to one more that stands for
 * everything else.
 *
 * With steps, whatever the code of one object calls is attributed to a step. The file has a line for each piece of that
 * code, in the order of addresses: first address, end, and the step whose statement it is, or one of two numbers below.
 * Each time the code is left, to when it goes on, is a call of the last step that it was at; what a second core does from
 * a ring to its reply is a job of the step that the first core is at. Both are written as they end: the step, the address
 * that they began at, what the first core had executed by then, instructions, and bytes loaded and stored by range.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef PLUGIN_INTERFACE
#define PLUGIN_INTERFACE 1
#endif
#define EXPORT __attribute__((visibility("default")))

struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum { CALLBACK_READS_NO_REGISTERS = 0 };
enum { MEMORY_READ_AND_WRITE = 3 };

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *block, size_t index);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *instruction);
unsigned int qemu_plugin_mem_size_shift(uint32_t info);
bool qemu_plugin_mem_is_store(uint32_t info);
void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, void (*callback)(uint64_t, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *block, void (*callback)(unsigned int, void *),
                                          int flags, void *data);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *instruction,
                                            void (*callback)(unsigned int, void *), int flags, void *data);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *instruction,
                                      void (*callback)(unsigned int, uint32_t, uint64_t, void *), int flags,
                                      int read_or_write, void *data);
void qemu_plugin_register_atexit_cb(uint64_t id, void (*callback)(uint64_t, void *), void *data);

enum { NUM_PROCESSORS = 2 };
enum { IN_NO_STEP = -1, WHEREVER_ITS_CALLER_IS = -2 };

struct block {
    uint64_t address;
    uint64_t num_instructions;
    uint64_t num_executions[NUM_PROCESSORS];
    bool is_entry;
    int step;
    struct block *next;
};

/* A piece of the code that has the steps. */
struct piece {
    uint64_t first;
    uint64_t end;
    int step;
};

struct traffic {
    uint64_t loads;
    uint64_t stores;
    uint64_t loaded_bytes;
    uint64_t stored_bytes;
};

struct range {
    uint64_t first;
    uint64_t last;
    struct traffic of[NUM_PROCESSORS];
    uint64_t lowest_written;
    uint64_t highest_written;
};

enum { MAXIMUM_RANGES = 64 };

static uint64_t begin_address;
static uint64_t end_address;
static uint64_t second_begin_address = UINT64_MAX;
static uint64_t second_end_address = UINT64_MAX;
static FILE *out;
static struct block *blocks;
static struct range ranges[MAXIMUM_RANGES + 1];
static size_t num_ranges;
static bool counting[NUM_PROCESSORS];
static uint64_t executed[NUM_PROCESSORS];
static struct piece *pieces;
static size_t num_pieces;
static int current_step;

/* What runs for a step on each core, and how things stood when it began. */
static struct work {
    bool is_open;
    uint64_t address;
    uint64_t began_at; /* of the first core */
    uint64_t executed;
    struct traffic traffic[MAXIMUM_RANGES + 1];
} works[NUM_PROCESSORS];

static void open_work(unsigned int processor, uint64_t address)
{
    struct work *const work = &works[processor];

    work->is_open = true;
    work->address = address;
    work->began_at = executed[0];
    work->executed = executed[processor];
    for (size_t index = 0; index <= num_ranges; ++index) {
        work->traffic[index] = ranges[index].of[processor];
    }
}

static void close_work(unsigned int processor)
{
    struct work *const work = &works[processor];

    if (!work->is_open) {
        return;
    }
    work->is_open = false;
    if (processor == 0 && current_step == IN_NO_STEP) {
        return;
    }
    fprintf(out, "%s %d %" PRIu64 " %" PRIu64 " %" PRIu64, processor == 0 ? "call" : "job", current_step,
            work->address, work->began_at, executed[processor] - work->executed);
    for (size_t index = 0; index <= num_ranges; ++index) {
        const struct traffic *const before = &work->traffic[index];
        const struct traffic *const after = &ranges[index].of[processor];

        fprintf(out, " %" PRIu64 " %" PRIu64, after->loaded_bytes - before->loaded_bytes,
                after->stored_bytes - before->stored_bytes);
    }
    fprintf(out, "\n");
}

static const struct piece *piece_at(uint64_t address)
{
    size_t first = 0;
    size_t end = num_pieces;

    while (first < end) {
        const size_t middle = first + (end - first) / 2;

        if (address < pieces[middle].first) {
            end = middle;
        } else if (address >= pieces[middle].end) {
            first = middle + 1;
        } else {
            return &pieces[middle];
        }
    }
    return NULL;
}

static void read_pieces(const char *path)
{
    FILE *const file = fopen(path, "r");
    struct piece piece;

    while (file != NULL && fscanf(file, "%" SCNu64 " %" SCNu64 " %d", &piece.first, &piece.end, &piece.step) == 3) {
        pieces = realloc(pieces, (num_pieces + 1) * sizeof *pieces);
        if (pieces == NULL) {
            abort();
        }
        pieces[num_pieces++] = piece;
    }
    if (file != NULL) {
        fclose(file);
    }
}

static void on_begin(unsigned int processor, void *data)
{
    (void)processor;
    (void)data;
    memset(executed, 0, sizeof executed);
    works[0].is_open = works[1].is_open = false;
    current_step = IN_NO_STEP;
    for (struct block *block = blocks; block != NULL; block = block->next) {
        memset(block->num_executions, 0, sizeof block->num_executions);
    }
    for (size_t index = 0; index <= num_ranges; ++index) {
        memset(ranges[index].of, 0, sizeof ranges[index].of);
        ranges[index].lowest_written = UINT64_MAX;
        ranges[index].highest_written = 0;
    }
    counting[0] = true;
}

static void on_end(unsigned int processor, void *data)
{
    uint64_t instructions[NUM_PROCESSORS] = {0, 0};

    (void)processor;
    (void)data;
    counting[0] = false;
    close_work(0);
    for (const struct block *block = blocks; block != NULL; block = block->next) {
        instructions[0] += block->num_instructions * block->num_executions[0];
        instructions[1] += block->num_instructions * block->num_executions[1];
    }
    fprintf(out, "inference %" PRIu64 "\n", instructions[0]);
    if (second_begin_address != UINT64_MAX) {
        fprintf(out, "second %" PRIu64 "\n", instructions[1]);
    }
}

static void on_second_begin(unsigned int processor, void *data)
{
    (void)processor;
    (void)data;
    counting[1] = counting[0];
    if (counting[1]) {
        fprintf(out, "ring\n");
        fflush(out); /* if no reply follows, this is the last that is known */
        if (num_pieces > 0) {
            open_work(1, second_begin_address);
        }
    }
}

static void on_second_end(unsigned int processor, void *data)
{
    (void)processor;
    (void)data;
    if (counting[1]) {
        close_work(1);
        fprintf(out, "reply\n");
        fflush(out);
    }
    counting[1] = false;
}

static void on_block(unsigned int processor, void *data)
{
    struct block *const block = data;

    processor %= NUM_PROCESSORS;
    if (!counting[processor]) {
        return;
    }
    if (num_pieces > 0 && processor == 0) {
        if (block->is_entry) {
            close_work(0);
            current_step = block->step == WHEREVER_ITS_CALLER_IS ? current_step : block->step;
        } else if (!works[0].is_open) {
            open_work(0, block->address);
        }
    }
    block->num_executions[processor] += 1;
    executed[processor] += block->num_instructions;
}

static void on_access(unsigned int processor, uint32_t info, uint64_t address, void *data)
{
    const uint64_t size_bytes = (uint64_t)1 << qemu_plugin_mem_size_shift(info);
    struct range *range = ranges;
    struct traffic *traffic;

    (void)data;
    processor %= NUM_PROCESSORS;
    if (!counting[processor]) {
        return;
    }
    while (range < ranges + num_ranges && (address < range->first || address > range->last)) {
        ++range;
    }
    traffic = &range->of[processor];
    if (qemu_plugin_mem_is_store(info)) {
        traffic->stores += 1;
        traffic->stored_bytes += size_bytes;
        if (address < range->lowest_written) {
            range->lowest_written = address;
        }
        if (address + size_bytes - 1 > range->highest_written) {
            range->highest_written = address + size_bytes - 1;
        }
    } else {
        traffic->loads += 1;
        traffic->loaded_bytes += size_bytes;
    }
}

/* The step of a block of the code that has the steps: that of its last instruction which says so, since a call ends it. */
static void find_step(struct block *block, const struct qemu_plugin_tb *translated)
{
    block->is_entry = piece_at(block->address) != NULL;
    block->step = WHEREVER_ITS_CALLER_IS;
    for (size_t index = 0; block->is_entry && index < block->num_instructions; ++index) {
        const struct piece *const piece =
            piece_at(qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(translated, index)));

        if (piece != NULL && piece->step != WHEREVER_ITS_CALLER_IS) {
            block->step = piece->step;
        }
    }
}

static void on_translation(uint64_t id, struct qemu_plugin_tb *translated)
{
    const size_t num_instructions = qemu_plugin_tb_n_insns(translated);
    const uint64_t address = qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(translated, 0));
    struct block *block;

    (void)id;
    if (address == end_address || address == second_end_address) {
        qemu_plugin_register_vcpu_tb_exec_cb(translated, address == end_address ? on_end : on_second_end,
                                             CALLBACK_READS_NO_REGISTERS, NULL);
        return;
    }
    for (size_t index = 0; index < num_instructions; ++index) {
        struct qemu_plugin_insn *const instruction = qemu_plugin_tb_get_insn(translated, index);

        if (qemu_plugin_insn_vaddr(instruction) == begin_address) {
            qemu_plugin_register_vcpu_insn_exec_cb(instruction, on_begin, CALLBACK_READS_NO_REGISTERS, NULL);
            return;
        }
        if (qemu_plugin_insn_vaddr(instruction) == second_begin_address) {
            qemu_plugin_register_vcpu_insn_exec_cb(instruction, on_second_begin, CALLBACK_READS_NO_REGISTERS, NULL);
            return;
        }
        if (num_ranges > 0) {
            qemu_plugin_register_vcpu_mem_cb(instruction, on_access, CALLBACK_READS_NO_REGISTERS,
                                             MEMORY_READ_AND_WRITE, NULL);
        }
    }
    block = calloc(1, sizeof *block);
    if (block == NULL) {
        abort();
    }
    block->address = address;
    block->num_instructions = num_instructions;
    find_step(block, translated);
    block->next = blocks;
    blocks = block;
    qemu_plugin_register_vcpu_tb_exec_cb(translated, on_block, CALLBACK_READS_NO_REGISTERS, block);
}

/* The totals are of every inference, the details of the last. */
static void on_exit(uint64_t id, void *data)
{
    (void)id;
    (void)data;
    for (const struct block *block = blocks; block != NULL; block = block->next) {
        for (int processor = 0; processor < NUM_PROCESSORS; ++processor) {
            if (block->num_executions[processor] > 0) {
                fprintf(out, "%s %" PRIu64 " %" PRIu64 "\n", processor == 0 ? "block" : "second_block", block->address,
                        block->num_instructions * block->num_executions[processor]);
            }
        }
    }
    for (size_t index = 0; num_ranges > 0 && index <= num_ranges; ++index) {
        const struct range *const range = &ranges[index];
        fprintf(out, "range %zu %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", index,
                range->of[0].loads + range->of[1].loads, range->of[0].stores + range->of[1].stores,
                range->of[0].loaded_bytes + range->of[1].loaded_bytes,
                range->of[0].stored_bytes + range->of[1].stored_bytes, range->lowest_written,
                range->highest_written);
        fprintf(out, "bytes %zu %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", index, range->of[0].loaded_bytes,
                range->of[0].stored_bytes, range->of[1].loaded_bytes, range->of[1].stored_bytes);
    }
    fclose(out);
}

EXPORT int qemu_plugin_version = PLUGIN_INTERFACE;
EXPORT int qemu_plugin_install(uint64_t id, const void *information, int argc, char **argv);

int qemu_plugin_install(uint64_t id, const void *information, int argc, char **argv)
{
    (void)information;
    for (int index = 0; index < argc; ++index) {
        const char *const argument = argv[index];

        if (strncmp(argument, "begin=", 6) == 0) {
            begin_address = strtoull(argument + 6, NULL, 0);
        } else if (strncmp(argument, "end=", 4) == 0) {
            end_address = strtoull(argument + 4, NULL, 0);
        } else if (strncmp(argument, "second_begin=", 13) == 0) {
            second_begin_address = strtoull(argument + 13, NULL, 0);
        } else if (strncmp(argument, "second_end=", 11) == 0) {
            second_end_address = strtoull(argument + 11, NULL, 0);
        } else if (strncmp(argument, "out=", 4) == 0) {
            out = fopen(argument + 4, "w");
        } else if (strncmp(argument, "steps=", 6) == 0) {
            read_pieces(argument + 6);
        } else if (strncmp(argument, "range=", 6) == 0 && num_ranges < MAXIMUM_RANGES) {
            char *separator;
            ranges[num_ranges].first = strtoull(argument + 6, &separator, 0);
            ranges[num_ranges].last = strtoull(separator + 1, NULL, 0);
            ++num_ranges;
        } else {
            return -1;
        }
    }
    if (out == NULL) {
        return -1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
    qemu_plugin_register_atexit_cb(id, on_exit, NULL);
    return 0;
}
