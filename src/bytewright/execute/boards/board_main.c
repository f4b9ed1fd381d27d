/* The harness on a bare board: files through semihosting, every inference on a painted stack of its own.
 *
 * Command line (semihosting): NUM_INFERENCES NUM_REPETITIONS. Reads inputs.bin, and regions.bin where the board's
 * memory protection is used; writes outputs.bin and report.txt, all in QEMU's folder. report.txt has one line per
 * fact: "stack N", "status N", or "fault ...".
 */
#include "harness.h"

#include <string.h>

#if HARNESS_SECOND_CORE
#include "second_core.h"
#endif

#define STRINGIFY(text) #text

enum { SYS_OPEN = 0x01, SYS_CLOSE = 0x02, SYS_WRITE = 0x05, SYS_READ = 0x06, SYS_GET_CMDLINE = 0x15, SYS_EXIT_EXTENDED = 0x20 };
enum { MODE_READ_BINARY = 1, MODE_WRITE_BINARY = 5 };
enum { EXIT_FINE = 0, EXIT_MACHINE = 1, EXIT_MODEL = 2, EXIT_FAULT = 3, EXIT_VIOLATED = 4 };

#if HARNESS_SECOND_CORE
#define HARNESS_NUM_DEVICES 1
#else
#define HARNESS_NUM_DEVICES 0
#endif

#define STACK_PAINT 0x5AC3A53Cu

/* Words below the model's stack that must stay as they are: before v8-M no register limits the stack. */
#if __ARM_ARCH >= 8
enum { STACK_GUARD_WORDS = 0 };
#else
enum { STACK_GUARD_WORDS = 16 };
#endif

/* What startup.S reads and writes, by offset. */
struct harness_stack {
    uint32_t *base; /* of the guard, if there is one */
    uint32_t *top;
    uint32_t paint;
    uint32_t *lowest_written; /* by the last run */
};

/* Calls HARNESS_RUN, or what stands for it, with these arguments: four in registers, which it need not look at, and the others on its stack. */
int32_t harness_call(const uintptr_t *arguments, uint32_t num_on_stack);
void harness_unprotect(void);
void harness_exit(int status) __attribute__((noreturn));
void harness_fault(const uint32_t *frame, uint32_t is_in_run) __attribute__((noreturn));

static uint32_t harness_model_stack[STACK_GUARD_WORDS + HARNESS_STACK_BYTES / 4]
    __attribute__((aligned(8), used, section(HARNESS_STACK_SECTION)));
struct harness_stack harness_stack = {
    .base = harness_model_stack,
    .top = harness_model_stack + STACK_GUARD_WORDS + HARNESS_STACK_BYTES / 4,
    .paint = STACK_PAINT,
};
static harness_session harness_model_session;
/* What the runs get: of a session they may write the context alone. */
static HARNESS_CONTEXT_TYPE harness_model_context __attribute__((used)) HARNESS_WRITABLE;

#define DECLARE_INPUT(index, member, size_bytes) \
    static unsigned char harness_input_##index[HARNESS_WHOLE_LINES(size_bytes)] __attribute__((aligned(HARNESS_IO_ALIGNMENT), used));
HARNESS_INPUTS(DECLARE_INPUT)
#if HARNESS_IO_IN_WORKSPACE
#define OUTPUT_WRITABLE /* copies, which the run does not know */
#else
#define OUTPUT_WRITABLE HARNESS_WRITABLE
#endif
#define DECLARE_OUTPUT(index, member, size_bytes) \
    static unsigned char harness_output_##index[HARNESS_WHOLE_LINES(size_bytes)] __attribute__((aligned(HARNESS_IO_ALIGNMENT), used)) OUTPUT_WRITABLE;
HARNESS_OUTPUTS(DECLARE_OUTPUT)
#define DECLARE_WORKSPACE(index, member, size_bytes, alignment, name)                                 \
    static unsigned char harness_workspace_##index[(size_bytes) + 2 * HARNESS_GUARD_BYTES(alignment)] \
        __attribute__((aligned(alignment), used, section(name)));
HARNESS_WORKSPACES(DECLARE_WORKSPACE)
#define DECLARE_COPY(index, member, size_bytes, alignment, name) \
    static unsigned char harness_copy_##index[size_bytes] __attribute__((aligned(alignment), used, section(name)));
HARNESS_COPIES(DECLARE_COPY)
#define DECLARE_BLOB(index, member, path, alignment, name)                                                  \
    __asm__(".section " name ", \"a\"\n.balign " STRINGIFY(alignment) "\n.type harness_blob_" #index            \
            ", %object\nharness_blob_" #index ":\n.incbin \"" path "\"\n.size harness_blob_" #index            \
            ", . - harness_blob_" #index "\n.previous\n");                                                    \
    extern const unsigned char harness_blob_##index[];
HARNESS_BLOBS(DECLARE_BLOB)

/* The same in order; one element more than needed, so that an empty table is no empty array. */
#define AT_INPUT(index, member, size_bytes) harness_input_##index,
static void *const inputs[] = {HARNESS_INPUTS(AT_INPUT) NULL};
#define AT_OUTPUT(index, member, size_bytes) harness_output_##index,
static void *const outputs[] = {HARNESS_OUTPUTS(AT_OUTPUT) NULL};
#define AT_WORKSPACE(index, member, size_bytes, alignment, name) \
    harness_workspace_##index + HARNESS_GUARD_BYTES(alignment),
static void *const workspaces[] = {HARNESS_WORKSPACES(AT_WORKSPACE) NULL};
#define AT_BLOB(index, member, path, alignment, name) harness_blob_##index,
static const void *const blobs[] = {HARNESS_BLOBS(AT_BLOB) NULL};
#define AT_COPY(index, member, size_bytes, alignment, name) harness_copy_##index,
static void *const copies[] = {HARNESS_COPIES(AT_COPY) NULL};

static int report_file = -1;

static int semihosting(int operation, const void *block)
{
    register int r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = block;

    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

void harness_exit(int status)
{
    const uint32_t block[2] = {0x20026u /* the application has ended */, (uint32_t)status};

    for (;;) {
        semihosting(SYS_EXIT_EXTENDED, block);
    }
}

static int open_file(const char *path, int mode)
{
    const uint32_t block[3] = {(uint32_t)(uintptr_t)path, (uint32_t)mode, (uint32_t)strlen(path)};
    const int file = semihosting(SYS_OPEN, block);

    if (file < 0) {
        harness_exit(EXIT_MACHINE);
    }
    return file;
}

/* Reads or writes all of size_bytes; both calls return the number of bytes that were not transferred. */
static void transfer(int operation, int file, const void *data, size_t size_bytes)
{
    const uint32_t block[3] = {(uint32_t)file, (uint32_t)(uintptr_t)data, (uint32_t)size_bytes};

    if (semihosting(operation, block) != 0) {
        harness_exit(EXIT_MACHINE);
    }
}

static void report_text(const char *text)
{
    transfer(SYS_WRITE, report_file, text, strlen(text));
}

static void report_number(const char *name, uint32_t value)
{
    char digits[12];
    char *digit = digits + sizeof digits;

    *--digit = '\0';
    *--digit = '\n';
    do {
        *--digit = (char)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    report_text(name);
    report_text(" ");
    report_text(digit);
}

static uint32_t peripheral(uint32_t address)
{
    return *(volatile uint32_t *)(uintptr_t)address;
}

/* Entered on the main stack, on any exception. The frame is read only where the stacks are. */
void harness_fault(const uint32_t *frame, uint32_t is_in_run)
{
    extern uint32_t __harness_main_stack_base[], __harness_main_stack_top[];
    const uintptr_t address = (uintptr_t)frame;
    const uintptr_t stack_base = (uintptr_t)harness_model_stack;
    const uintptr_t stack_end = stack_base + sizeof harness_model_stack;

    if (report_file >= 0) {
        report_number("fault_cfsr", peripheral(0xE000ED28u));
        report_number("fault_hfsr", peripheral(0xE000ED2Cu));
        report_number("fault_mmfar", peripheral(0xE000ED34u));
        report_number("fault_bfar", peripheral(0xE000ED38u));
        report_number("fault_sfsr", peripheral(0xE000EDE4u));
        report_number("fault_icsr", peripheral(0xE000ED04u));
        report_number("fault_in_run", is_in_run != 0);
        report_number("fault_below_stack", address < stack_base && stack_base - address < 0x100000u);
        if ((address >= stack_base && address + 32 <= stack_end) ||
            (address >= (uintptr_t)__harness_main_stack_base && address + 32 <= (uintptr_t)__harness_main_stack_top)) {
            report_number("fault_lr", frame[5]);
            report_number("fault_pc", frame[6]);
        }
    }
    harness_exit(EXIT_FAULT);
}

/* newlib sets errno where a result of expf overflows or underflows: the one write of a run that no caller asked for. */
int *__errno(void)
{
    static int number HARNESS_WRITABLE;

    return &number;
}

#if HARNESS_NUM_REGIONS > 0
/* Registers of v8-M's memory protection unit for one region: RBAR and RLAR. */
struct harness_region {
    uint32_t base;
    uint32_t limit;
};

enum { MPU_TYPE = 0, MPU_CTRL = 1, MPU_RNR = 2, MPU_RBAR = 3, MPU_RLAR = 4, MPU_MAIR0 = 12 };
enum { SWITCHED_OFF = 0, ON_WITH_DEFAULT_MAP_BEHIND = 5 };

static struct harness_region set_up_regions[HARNESS_NUM_REGIONS];
static struct harness_region run_regions[HARNESS_NUM_REGIONS];

static void program_regions(const struct harness_region *regions, uint32_t control)
{
    volatile uint32_t *const mpu = (volatile uint32_t *)(uintptr_t)0xE000ED90u;

    mpu[MPU_CTRL] = SWITCHED_OFF;
    mpu[MPU_MAIR0] = 0xFFu; /* attribute 0 is normal memory, write-back */
    for (uint32_t region = 0; region < HARNESS_NUM_REGIONS; ++region) {
        mpu[MPU_RNR] = region;
        mpu[MPU_RBAR] = regions[region].base;
        mpu[MPU_RLAR] = regions[region].limit;
    }
    mpu[MPU_CTRL] = control;
    __asm__ volatile("dsb\n isb" ::: "memory");
}

static void load_regions(void)
{
    const int file = open_file("regions.bin", MODE_READ_BINARY);

    if (((peripheral(0xE000ED90u) >> 8) & 0xFFu) < HARNESS_NUM_REGIONS) {
        harness_exit(EXIT_MACHINE);
    }
    transfer(SYS_READ, file, set_up_regions, sizeof set_up_regions);
    transfer(SYS_READ, file, run_regions, sizeof run_regions);
}
#endif

/* Before anything of the bundle runs. */
static void protect_set_up(void)
{
    *(volatile uint32_t *)(uintptr_t)0xE000ED14u |= 1u << 4; /* CCR.DIV_0_TRP */
#if HARNESS_NUM_REGIONS > 0
    load_regions();
    program_regions(set_up_regions, ON_WITH_DEFAULT_MAP_BEHIND);
#endif
}

/* One run, on a stack that is painted anew. Returns the status. */
static int32_t run_once(const int32_t *extents, uint32_t *stack_bytes)
{
#define PASS_EXTENT(index) (uintptr_t)extents[index],
    enum {
        NUM_DEVICES = HARNESS_INPUT_ROWS ? 0 : HARNESS_NUM_DEVICES,
        NUM_ARGUMENTS = HARNESS_NUM_EXTENTS + (HARNESS_IO_IN_WORKSPACE ? 1 : 3) + NUM_DEVICES
    };
    const uintptr_t arguments[4 + NUM_ARGUMENTS] = {
        (uintptr_t)&harness_model_context,
#if !HARNESS_IO_IN_WORKSPACE
#if HARNESS_INPUT_ROWS
        (uintptr_t)&harness_model_session.outputs,
        (uintptr_t)harness_model_session.image,
#else
        (uintptr_t)&harness_model_session.inputs,
        (uintptr_t)&harness_model_session.outputs,
#endif
#endif
        HARNESS_EXTENTS(PASS_EXTENT)
#if HARNESS_NUM_DEVICES > 0 && !HARNESS_INPUT_ROWS
        (uintptr_t)&harness_devices,
#endif
    };
    int32_t status;

    (void)extents;

    for (uint32_t *word = harness_stack.base; word < harness_stack.top; ++word) {
        *word = STACK_PAINT;
    }
#if HARNESS_NUM_REGIONS > 0
    program_regions(run_regions, SWITCHED_OFF); /* harness_call switches it on, and harness_unprotect off */
#endif
    status = harness_call(arguments, NUM_ARGUMENTS > 4 ? NUM_ARGUMENTS - 4 : 0);
#if HARNESS_NUM_REGIONS > 0
    program_regions(set_up_regions, ON_WITH_DEFAULT_MAP_BEHIND);
#endif
    const uint32_t used_bytes = (uint32_t)(harness_stack.top - harness_stack.lowest_written) * 4u;
    *stack_bytes = *stack_bytes > used_bytes ? *stack_bytes : used_bytes;
    return status;
}

static uint32_t parse_number(const char **text)
{
    uint32_t value = 0;

    while (**text == ' ') {
        ++*text;
    }
    while (**text >= '0' && **text <= '9') {
        value = value * 10 + (uint32_t)(**text - '0');
        ++*text;
    }
    return value;
}

#if HARNESS_PARANOID
void harness_violated(void)
{
#if HARNESS_NUM_REGIONS > 0
    harness_unprotect(); /* called in a run */
#endif
    harness_report(report_number);
    harness_exit(EXIT_VIOLATED);
}
#endif

static void check(int32_t status)
{
    if (status < 0) {
        report_number("status", (uint32_t)-status);
#if HARNESS_SECOND_CORE
        second_core_report(report_number);
#endif
        harness_exit(EXIT_MODEL);
    }
}

int main(void)
{
    static char command_line[80];
    uint32_t command_block[2] = {(uint32_t)(uintptr_t)command_line, sizeof command_line - 1};
    uint32_t stack_bytes = 0;
    const char *text = command_line;

    report_file = open_file("report.txt", MODE_WRITE_BINARY);
    semihosting(SYS_GET_CMDLINE, command_block);
    const uint32_t num_inferences = parse_number(&text);
    const uint32_t num_repetitions = parse_number(&text);
    const int input_file = open_file("inputs.bin", MODE_READ_BINARY);
    const int output_file = open_file("outputs.bin", MODE_WRITE_BINARY);

    protect_set_up();
    for (int index = 0; index < HARNESS_NUM_WORKSPACES; ++index) {
        memset(workspaces[index], HARNESS_WORKSPACE_FILL, harness_workspace_size_bytes[index]);
    }

#if HARNESS_SECOND_CORE
    second_core_start();
#endif
    check(harness_set_up(&harness_model_session, workspaces, blobs, copies));
    harness_model_context = harness_model_session.context;
    for (uint32_t inference = 0; inference < num_inferences; ++inference) {
        int32_t extents[HARNESS_NUM_EXTENTS + 1];

        transfer(SYS_READ, input_file, extents, HARNESS_NUM_EXTENTS * sizeof extents[0]);
        for (int index = 0; index < HARNESS_NUM_INPUTS; ++index) {
            transfer(SYS_READ, input_file, inputs[index], harness_input_size_bytes[index]);
        }
        for (uint32_t repetition = 0; repetition < num_repetitions; ++repetition) {
            harness_bind(&harness_model_session, inputs, outputs, extents);
            check(run_once(extents, &stack_bytes));
        }
        harness_collect(&harness_model_session, outputs, extents);
        for (int index = 0; index < HARNESS_NUM_OUTPUTS; ++index) {
            transfer(SYS_WRITE, output_file, outputs[index], harness_output_size_bytes[index]);
        }
    }

    report_number("stack", stack_bytes);
#if HARNESS_SECOND_CORE
    report_number("device_stack", second_core_stack_bytes());
#endif
    return EXIT_FINE;
}
