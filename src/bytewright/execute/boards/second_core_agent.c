/* Core 1's side: what it opens for kernels, what it refuses, and what it says of a fault.
 *
 * Runs privileged, between the sleep and the kernels. What kernels may touch are the regions of the memory protection
 * unit: the code with its constants, their stack, the mailbox's spans, and what core 0 has opened.
 */
#include <string.h>

#include "second_core.h"
#include "second_core_regions.h"

#define STACK_PAINT 0x5AC3A53Cu

enum { MPU_TYPE = 0, MPU_CTRL = 1, MPU_RNR = 2, MPU_RBAR = 3, MPU_RLAR = 4, MPU_MAIR0 = 12 };
enum { SWITCHED_OFF = 0, ON_FOR_KERNELS = 5 }; /* what is privileged has the default map behind */
/* By offset, for second_core.S: as core 1 sees it. */
struct second_core_stack {
    uint32_t *base;
    uint32_t *top;
};

extern unsigned char __harness_code_start[], __harness_code_end[];

static uint32_t harness_device_stack[HARNESS_DEVICE_STACK_BYTES / 4]
    __attribute__((aligned(GRANULE_BYTES), used, section(HARNESS_DEVICE_STACK_SECTION)));
struct second_core_stack second_core_stack;
uint32_t second_core_main_stack[256] __attribute__((aligned(8)));
__asm__(".global second_core_main_stack_top\n.set second_core_main_stack_top, second_core_main_stack + 1024\n");
struct second_core_mailbox second_core_mailbox HARNESS_WRITABLE;

/* What is open, exactly; the regions are rounded to granules. */
static HARNESS_MODEL(span) second_core_opened[SECOND_CORE_MOST_SPANS];
static uint32_t second_core_num_opened;

static volatile uint32_t *registers(uint32_t address)
{
    return (volatile uint32_t *)(uintptr_t)address;
}

static void program(const struct region *regions, uint32_t num_regions)
{
    volatile uint32_t *const mpu = registers(0xE000ED90u);
    const uint32_t num_available = (mpu[MPU_TYPE] >> 8) & 0xFFu;

    mpu[MPU_CTRL] = SWITCHED_OFF;
    mpu[MPU_MAIR0] = 0xFFu; /* attribute 0 is normal memory, write-back */
    for (uint32_t index = 0; index < num_available; ++index) {
        mpu[MPU_RNR] = index;
        mpu[MPU_RBAR] = index < num_regions ? regions[index].first | regions[index].rights : 0u;
        mpu[MPU_RLAR] = index < num_regions ? (regions[index].end - GRANULE_BYTES) | 1u : 0u;
    }
    mpu[MPU_CTRL] = ON_FOR_KERNELS;
    __asm__ volatile("dsb\n isb" ::: "memory");
}

/* The regions that there are always, in front of those that are opened. */
static uint32_t always_open(struct region *regions)
{
    const uint32_t base = (uint32_t)(uintptr_t)second_core_stack.base;
    const uint32_t code = (uint32_t)(uintptr_t)__harness_code_start;
    const uint32_t lent = HARNESS_DEVICE_VIEW((uint32_t)(uintptr_t)&second_core_mailbox.lent);

    regions[0] = region_of(code, (uint32_t)(__harness_code_end - __harness_code_start), MAY_EXECUTE);
    regions[1] = region_of(base, sizeof harness_device_stack, MAY_WRITE);
    regions[2] = region_of(lent, sizeof second_core_mailbox.lent, MAY_READ);
    return 3;
}

static int32_t fail(struct second_core_mailbox *mailbox, uint32_t failure, uint32_t span)
{
    mailbox->failure.kind = failure;
    mailbox->failure.span = span;
    mailbox->failure.address = failure == JOB_NOT_LENT ? (uint32_t)(uintptr_t)mailbox->lent.spans[span].base : 0u;
    return -1;
}

static int32_t open_spans(struct second_core_mailbox *mailbox)
{
    struct region regions[3 + SECOND_CORE_MOST_SPANS];
    const uint32_t num_available = (*registers(0xE000ED90u) >> 8) & 0xFFu;
    const uint32_t num_fixed = always_open(regions);
    uint32_t num_regions = num_fixed;

    for (uint32_t index = 0; index < mailbox->num_spans; ++index) {
        const HARNESS_MODEL(span) *const span = &mailbox->lent.spans[index];
        const uint32_t rights = (span->access & JOB_WRITE) != 0 ? MAY_WRITE : MAY_READ;

        second_core_opened[index] = *span;
        num_regions = insert_region(regions, num_fixed, num_regions,
                                    region_of((uint32_t)(uintptr_t)span->base, span->size_bytes, rights));
    }
    num_regions = separate(regions, num_fixed, num_regions);
    if (num_regions > num_available) {
        return fail(mailbox, JOB_TOO_MANY_REGIONS, num_regions);
    }
    second_core_num_opened = mailbox->num_spans;
    program(regions, num_regions);
    return 0;
}

static void close_spans(void)
{
    struct region regions[3];

    second_core_num_opened = 0;
    program(regions, always_open(regions));
}

static int is_open(const HARNESS_MODEL(span) *span)
{
    for (uint32_t index = 0; index < second_core_num_opened; ++index) {
        const uint32_t offset = (uint32_t)((uintptr_t)span->base - (uintptr_t)second_core_opened[index].base);

        if (offset <= second_core_opened[index].size_bytes && span->size_bytes <= second_core_opened[index].size_bytes - offset &&
            (span->access & ~second_core_opened[index].access) == 0) {
            return 1;
        }
    }
    return 0;
}

static int32_t execute(struct second_core_mailbox *mailbox)
{
    for (uint32_t index = 0; index < mailbox->num_spans; ++index) {
        if (!is_open(&mailbox->lent.spans[index])) {
            return fail(mailbox, JOB_NOT_LENT, index);
        }
    }
    const struct second_core_lent *const lent =
        (const struct second_core_lent *)(uintptr_t)HARNESS_DEVICE_VIEW((uint32_t)(uintptr_t)&mailbox->lent);
    const int32_t status = second_core_call(mailbox->code_bytes > 0 ? lent->code : NULL, mailbox->code_bytes, lent->spans,
                                            mailbox->num_spans);
    if (status < 0 && mailbox->failure.kind == JOB_FINE) {
        mailbox->failure.kind = JOB_REFUSED;
    }
    return status;
}

int32_t second_core_serve(struct second_core_mailbox *mailbox)
{
    switch (mailbox->command) {
    case JOB_OPEN:
        return open_spans(mailbox);
    case JOB_EXECUTE:
        return execute(mailbox);
    default: /* nothing is open before and after */
        close_spans();
        return 0;
    }
}

void second_core_begin(void)
{
    second_core_stack.base =
        (uint32_t *)(uintptr_t)HARNESS_DEVICE_STACK_VIEW((uint32_t)(uintptr_t)harness_device_stack);
    second_core_stack.top = second_core_stack.base + HARNESS_DEVICE_STACK_BYTES / 4;
    for (uint32_t *word = second_core_stack.base; word < second_core_stack.top; ++word) {
        *word = STACK_PAINT;
    }
    *registers(0xE000ED14u) |= 1u << 4; /* CCR.DIV_0_TRP */
    *registers(NVIC_ISER) = 1u << SECOND_CORE_RING_INTERRUPT;
    close_spans();
    second_core_mailbox.served = second_core_mailbox.request;
}

void second_core_note_fault(const uint32_t *frame)
{
    struct second_core_fault *const fault = &second_core_mailbox.fault;

    second_core_mailbox.failure.kind = JOB_FAULTED;
    fault->cfsr = *registers(0xE000ED28u);
    fault->hfsr = *registers(0xE000ED2Cu);
    fault->mmfar = *registers(0xE000ED34u);
    fault->bfar = *registers(0xE000ED38u);
    fault->sfsr = *registers(0xE000EDE4u);
    fault->icsr = *registers(0xE000ED04u);
    fault->has_frame = frame >= second_core_stack.base && frame + 8 <= second_core_stack.top;
    if (fault->has_frame) {
        fault->lr = frame[5];
        fault->pc = frame[6];
    }
    /* Written ones clear the flags, for the next fault to say what it is. */
    *registers(0xE000ED28u) = fault->cfsr;
    *registers(0xE000ED2Cu) = fault->hfsr;
    *registers(0xE000EDE4u) = fault->sfsr;
}

uint32_t second_core_stack_bytes(void)
{
    const uint32_t *word = second_core_stack.base;

    while (word < second_core_stack.top && *word == STACK_PAINT) {
        ++word;
    }
    return (uint32_t)(second_core_stack.top - word) * 4u;
}
