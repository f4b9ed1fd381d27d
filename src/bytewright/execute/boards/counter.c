/* A QEMU TCG plugin: executed instructions, and memory traffic, between two addresses of the guest.
 *
 * Counting starts when the instruction at `begin` executes, which is not counted itself, and ends before the
 * one at `end`. Blocks are counted as a whole: in a guest without interrupts a block that was entered is
 * executed to its end. What a second core does for that is counted for itself, between two addresses of its own: each
 * time from `second_begin`, not counted either, to before `second_end`. Debian ships no plugin header; the few functions used are declared here, from the
 * documented interface (QEMU, docs/devel/tcg-plugins): they kept their signatures from interface 1 to 4.
 *
 * Arguments: begin=ADDRESS end=ADDRESS [second_begin=ADDRESS second_end=ADDRESS] out=FILE [range=FIRST:LAST]...; with ranges, loads and stores are
 * attributed to the first range that holds the address, or to one more that stands for everything else.
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

struct block {
    uint64_t address;
    uint64_t num_instructions;
    uint64_t num_executions[NUM_PROCESSORS];
    struct block *next;
};

struct range {
    uint64_t first;
    uint64_t last;
    uint64_t loads;
    uint64_t stores;
    uint64_t loaded_bytes;
    uint64_t stored_bytes;
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

static void on_begin(unsigned int processor, void *data)
{
    (void)processor;
    (void)data;
    for (struct block *block = blocks; block != NULL; block = block->next) {
        memset(block->num_executions, 0, sizeof block->num_executions);
    }
    for (size_t index = 0; index <= num_ranges; ++index) {
        const struct range cleared = {ranges[index].first, ranges[index].last, 0, 0, 0, 0, UINT64_MAX, 0};
        ranges[index] = cleared;
    }
    counting[0] = true;
}

static void on_end(unsigned int processor, void *data)
{
    uint64_t instructions[NUM_PROCESSORS] = {0, 0};

    (void)processor;
    (void)data;
    counting[0] = false;
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
    }
}

static void on_second_end(unsigned int processor, void *data)
{
    (void)processor;
    (void)data;
    if (counting[1]) {
        fprintf(out, "reply\n");
        fflush(out);
    }
    counting[1] = false;
}

static void on_block(unsigned int processor, void *data)
{
    struct block *const block = data;

    block->num_executions[processor % NUM_PROCESSORS] += counting[processor % NUM_PROCESSORS];
}

static void on_access(unsigned int processor, uint32_t info, uint64_t address, void *data)
{
    const uint64_t size_bytes = (uint64_t)1 << qemu_plugin_mem_size_shift(info);
    struct range *range = ranges;

    (void)data;
    if (!counting[processor % NUM_PROCESSORS]) {
        return;
    }
    while (range < ranges + num_ranges && (address < range->first || address > range->last)) {
        ++range;
    }
    if (qemu_plugin_mem_is_store(info)) {
        range->stores += 1;
        range->stored_bytes += size_bytes;
        if (address < range->lowest_written) {
            range->lowest_written = address;
        }
        if (address + size_bytes - 1 > range->highest_written) {
            range->highest_written = address + size_bytes - 1;
        }
    } else {
        range->loads += 1;
        range->loaded_bytes += size_bytes;
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
                range->loads, range->stores, range->loaded_bytes, range->stored_bytes, range->lowest_written,
                range->highest_written);
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
