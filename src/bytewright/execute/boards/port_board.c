/* The harness's program on a bare board: files through semihosting, every inference on a painted stack of its own.
 *
 * What is measured of a run is the bytes of its stack. Also reads regions.bin where the board's memory protection is
 * used. All files are in QEMU's folder.
 */
#include "port.h"

#include <string.h>

#if HARNESS_NUM_DEVICES > 0
#include "second_core.h"
#endif

#define STRINGIFY(text) #text

enum { SYS_OPEN = 0x01, SYS_WRITE = 0x05, SYS_READ = 0x06, SYS_EXIT_EXTENDED = 0x20 };

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
void harness_begin(void);
void harness_fault(const uint32_t *frame, uint32_t is_in_run) __attribute__((noreturn));

static uint32_t harness_model_stack[STACK_GUARD_WORDS + HARNESS_STACK_BYTES / 4]
    __attribute__((aligned(8), used, section(HARNESS_STACK_SECTION)));
struct harness_stack harness_stack = {
    .base = harness_model_stack,
    .top = harness_model_stack + STACK_GUARD_WORDS + HARNESS_STACK_BYTES / 4,
    .paint = STACK_PAINT,
};

#define DECLARE_INPUT(index, member, size_bytes) \
    static unsigned char harness_input_##index[HARNESS_WHOLE_LINES(size_bytes)] __attribute__((aligned(HARNESS_IO_ALIGNMENT), used));
HARNESS_INPUTS(DECLARE_INPUT)
#if HARNESS_IO_IN_WORKSPACE && HARNESS_NUM_ENTRIES == 1
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
#define AT_OUTPUT(index, member, size_bytes) harness_output_##index,
static void *const buffers[] = {HARNESS_INPUTS(AT_INPUT) HARNESS_OUTPUTS(AT_OUTPUT) NULL};
#define AT_WORKSPACE(index, member, size_bytes, alignment, name) \
    harness_workspace_##index + HARNESS_GUARD_BYTES(alignment),
static void *const workspaces[] = {HARNESS_WORKSPACES(AT_WORKSPACE) NULL};
#define AT_BLOB(index, member, path, alignment, name) harness_blob_##index,
static const void *const blobs[] = {HARNESS_BLOBS(AT_BLOB) NULL};
#define AT_COPY(index, member, size_bytes, alignment, name) harness_copy_##index,
static void *const copies[] = {HARNESS_COPIES(AT_COPY) NULL};

static int semihosting(int operation, const void *block)
{
    register int r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = block;

    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

void port_exit(int status)
{
    const uint32_t block[2] = {0x20026u /* the application has ended */, (uint32_t)status};

    for (;;) {
        semihosting(SYS_EXIT_EXTENDED, block);
    }
}

int port_open(const char *path, int mode)
{
    const uint32_t modes[] = {[PORT_READ] = 1 /* rb */, [PORT_WRITE] = 5 /* wb */};
    const uint32_t block[3] = {(uint32_t)(uintptr_t)path, modes[mode], (uint32_t)strlen(path)};
    const int file = semihosting(SYS_OPEN, block);

    if (file < 0) {
        port_exit(HARNESS_MACHINE_FAILED);
    }
    return file;
}

/* Reads or writes all of size_bytes; both calls return the number of bytes that were not transferred. */
static void transfer(int operation, int file, const void *data, size_t size_bytes)
{
    const uint32_t block[3] = {(uint32_t)file, (uint32_t)(uintptr_t)data, (uint32_t)size_bytes};

    if (semihosting(operation, block) != 0) {
        port_exit(HARNESS_MACHINE_FAILED);
    }
}

void port_read(int file, void *to, size_t size_bytes)
{
    transfer(SYS_READ, file, to, size_bytes);
}

void port_write(int file, const void *from, size_t size_bytes)
{
    transfer(SYS_WRITE, file, from, size_bytes);
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

    harness_report("fault_cfsr", peripheral(0xE000ED28u));
    harness_report("fault_hfsr", peripheral(0xE000ED2Cu));
    harness_report("fault_mmfar", peripheral(0xE000ED34u));
    harness_report("fault_bfar", peripheral(0xE000ED38u));
    harness_report("fault_sfsr", peripheral(0xE000EDE4u));
    harness_report("fault_icsr", peripheral(0xE000ED04u));
    harness_report("fault_in_run", is_in_run != 0);
    harness_report("fault_below_stack", address < stack_base && stack_base - address < 0x100000u);
    if ((address >= stack_base && address + 32 <= stack_end) ||
        (address >= (uintptr_t)__harness_main_stack_base && address + 32 <= (uintptr_t)__harness_main_stack_top)) {
        harness_report("fault_lr", frame[5]);
        harness_report("fault_pc", frame[6]);
    }
    port_exit(HARNESS_FAULTED);
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
    const int file = port_open("regions.bin", PORT_READ);

    if (((peripheral(0xE000ED90u) >> 8) & 0xFFu) < HARNESS_NUM_REGIONS) {
        port_exit(HARNESS_MACHINE_FAILED);
    }
    port_read(file, set_up_regions, sizeof set_up_regions);
    port_read(file, run_regions, sizeof run_regions);
}
#endif

/* In startup.S, before main. */
void harness_begin(void)
{
    *(volatile uint32_t *)(uintptr_t)0xE000ED14u |= 1u << 4; /* CCR.DIV_0_TRP */
#if HARNESS_NUM_REGIONS > 0
    load_regions();
    program_regions(set_up_regions, ON_WITH_DEFAULT_MAP_BEHIND);
#endif
#if HARNESS_NUM_DEVICES > 0
    second_core_start();
#endif
}

/* One run, on a stack that is painted anew. */
int32_t harness_run_measured(harness_session *session, const int32_t *extents, int64_t *measured)
{
#define ARGUMENT(value) (uintptr_t)(value),
    const uintptr_t arguments[4 + HARNESS_NUM_ARGUMENTS] = {HARNESS_ARGUMENTS(ARGUMENT)};
    int32_t status;

    (void)extents;
    for (uint32_t *word = harness_stack.base; word < harness_stack.top; ++word) {
        *word = STACK_PAINT;
    }
#if HARNESS_NUM_REGIONS > 0
    program_regions(run_regions, SWITCHED_OFF); /* harness_call switches it on, and harness_unprotect off */
#endif
    status = harness_call(arguments, HARNESS_NUM_ARGUMENTS > 4 ? HARNESS_NUM_ARGUMENTS - 4 : 0);
#if HARNESS_NUM_REGIONS > 0
    program_regions(set_up_regions, ON_WITH_DEFAULT_MAP_BEHIND);
#endif
    *measured = (harness_stack.top - harness_stack.lowest_written) * 4;
    return status;
}

port_memory port_obtain_memory(void)
{
    const port_memory memory = {workspaces, blobs, copies};

    return memory;
}

void *port_buffer(int index, size_t size_bytes)
{
    (void)size_bytes;
    return buffers[index];
}
