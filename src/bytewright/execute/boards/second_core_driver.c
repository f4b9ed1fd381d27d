/* Core 0's side: the hooks that the model calls, as a driver of core 1 has them.
 *
 * They run as the model does, unprivileged and protected: rings and waits are supervisor calls. Addresses are
 * translated here, from those of core 0 to those of core 1.
 */
#include <string.h>

#include "port.h"
#include "second_core.h"

struct window {
    uint32_t first; /* as core 0 sees it */
    uint32_t size_bytes;
    uint32_t seen_at; /* by core 1 */
};

#define WINDOW(first, size_bytes, seen_at) {first, size_bytes, seen_at},
static const struct window windows[] = {HARNESS_DEVICE_WINDOWS(WINDOW){0, 0, 0}};
enum { NUM_WINDOWS = sizeof windows / sizeof *windows - 1 };

static struct {
    uint32_t is_in_flight;
} second_core_driver HARNESS_WRITABLE;

static int32_t fail(uint32_t failure, uint32_t span)
{
    second_core_mailbox.failure.kind = failure;
    second_core_mailbox.failure.span = span;
    return -1;
}

static int32_t put_span(uint32_t index, const HARNESS_MODEL(span) *span)
{
    const uint32_t first = (uint32_t)(uintptr_t)span->base;

    for (uint32_t number = 0; number < NUM_WINDOWS; ++number) {
        const uint32_t offset = first - windows[number].first;

        if (first >= windows[number].first && offset <= windows[number].size_bytes &&
            span->size_bytes <= windows[number].size_bytes - offset) {
            HARNESS_MODEL(span) *const seen = &second_core_mailbox.lent.spans[index];

            seen->base = (void *)(uintptr_t)(windows[number].seen_at + offset);
            seen->size_bytes = span->size_bytes;
            seen->access = span->access;
            return 0;
        }
    }
    second_core_mailbox.failure.address = first;
    return fail(JOB_UNREACHED, index);
}

static int32_t put_spans(const HARNESS_MODEL(span) *spans, uint32_t num_spans)
{
    if (num_spans > SECOND_CORE_MOST_SPANS) {
        return fail(JOB_TOO_MANY_SPANS, num_spans);
    }
    second_core_mailbox.num_spans = num_spans;
    for (uint32_t index = 0; index < num_spans; ++index) {
        if (put_span(index, &spans[index]) != 0) {
            return -1;
        }
    }
    return 0;
}

static void send(uint32_t command)
{
    second_core_mailbox.command = command;
    second_core_mailbox.request += 1;
    second_core_ring();
}

static int32_t exchange(uint32_t command)
{
    send(command);
    second_core_await();
    return second_core_mailbox.status;
}

static int32_t activate(void *self)
{
    (void)self;
    second_core_mailbox.failure.kind = JOB_FINE;
    second_core_mailbox.failure.job = 0;
    second_core_driver.is_in_flight = 0;
    return exchange(JOB_ACTIVATE);
}

static int32_t open_memories(void *self, const HARNESS_MODEL(span) *memories, uint32_t num)
{
    (void)self;
    return put_spans(memories, num) != 0 ? -1 : exchange(JOB_OPEN);
}

static int32_t launch(void *self, const HARNESS_MODEL(job) *job)
{
    (void)self;
    if (second_core_driver.is_in_flight) {
        return fail(JOB_OUT_OF_TURN, 0);
    }
    second_core_mailbox.failure.job += 1;
    second_core_mailbox.code_bytes = job->code == NULL ? 0 : job->code_bytes;
    if (second_core_mailbox.code_bytes > SECOND_CORE_MOST_CODE_BYTES) {
        return fail(JOB_TOO_MANY_SPANS, SECOND_CORE_MOST_SPANS + 1);
    }
    if (job->code != NULL) { /* which may lie on the stack of core 0 */
        memcpy(second_core_mailbox.lent.code, job->code, job->code_bytes);
    }
    if (put_spans(job->spans, job->num_spans) != 0) {
        return -1;
    }
    second_core_driver.is_in_flight = 1;
    send(JOB_EXECUTE);
    return 0;
}

static int32_t await_job(void *self)
{
    (void)self;
    second_core_await();
    second_core_driver.is_in_flight = 0;
    return second_core_mailbox.status;
}

static void close_memories(void *self)
{
    (void)self;
    (void)exchange(JOB_CLOSE);
}

const HARNESS_MODEL(devices) harness_devices = {
    .HARNESS_DEVICE_MEMBER = {NULL, activate, open_memories, launch, await_job, close_memories, NULL},
};

void second_core_start(void)
{
    extern const uint32_t second_core_vectors[];
    volatile uint32_t *const control = (volatile uint32_t *)(uintptr_t)0x50021110u; /* INITSVTOR0, INITSVTOR1, CPUWAIT */

    /* SHPR2: the reply must be able to end the sleep inside a supervisor call, which it is more urgent than. */
    *(volatile uint32_t *)(uintptr_t)0xE000ED1Cu |= 0x80u << 24;
    second_core_mailbox.request = 1;
    control[1] = (uint32_t)(uintptr_t)second_core_vectors;
    control[2] &= ~2u;
    second_core_await();
}

void harness_report_devices(void)
{
    struct second_core_mailbox *const mailbox = &second_core_mailbox;
    job_failure *const failure = &mailbox->failure;

    harness_report("device_stack", second_core_stack_bytes());
    failure->status = mailbox->status;
    failure->has_code = failure->job > 0 && mailbox->code_bytes >= sizeof failure->code_word;
    failure->code_word = mailbox->lent.code[0];
    port_write(port_open("device_failure.bin", PORT_WRITE), failure, sizeof *failure);
    if (failure->kind == JOB_FAULTED) {
        harness_report("fault_cfsr", mailbox->fault.cfsr);
        harness_report("fault_hfsr", mailbox->fault.hfsr);
        harness_report("fault_mmfar", mailbox->fault.mmfar);
        harness_report("fault_bfar", mailbox->fault.bfar);
        harness_report("fault_sfsr", mailbox->fault.sfsr);
        harness_report("fault_icsr", mailbox->fault.icsr);
        if (mailbox->fault.has_frame) {
            harness_report("fault_lr", mailbox->fault.lr);
            harness_report("fault_pc", mailbox->fault.pc);
        }
    }
}
