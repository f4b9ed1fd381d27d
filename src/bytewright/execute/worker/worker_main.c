/* A device as a process: it maps what it is lent, at addresses of its own, and carries out jobs until its commands end.
 *
 * "worker_device.h" says what it runs: WORKER_EXECUTE, the function of the bundle for this device, with WORKER_SPAN,
 * or nothing for a device that only copies. After a fault the process says where it was, and ends.
 */
#define _GNU_SOURCE

#include "worker.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "worker_device.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

enum { MOST_REGIONS = 256, MOST_SPANS = 1024 };

static struct {
    uint32_t num_regions;
    worker_region regions[MOST_REGIONS];
    unsigned char *bases[MOST_REGIONS];
    unsigned char *reserved; /* all regions and the pages around them */
    size_t reserved_bytes;
    size_t page;
} lent;

static void reply(const worker_reply *answer)
{
    const char *bytes = (const char *)answer;
    size_t left = sizeof *answer;

    while (left > 0) {
        const ssize_t written = write(WORKER_REPLIES, bytes, left);
        if (written <= 0) {
            _exit(1);
        }
        bytes += written;
        left -= (size_t)written;
    }
}

static void receive(void *to, size_t size_bytes)
{
    char *bytes = to;

    while (size_bytes > 0) {
        const ssize_t taken = read(WORKER_COMMANDS, bytes, size_bytes);
        if (taken < 0 && errno == EINTR) {
            continue;
        }
        if (taken <= 0) {
            _exit(0); /* the run is over */
        }
        bytes += taken;
        size_bytes -= (size_t)taken;
    }
}

static void on_fault(int number, siginfo_t *information, void *context)
{
    worker_reply answer = {JOB_FAULTED, number, (uint64_t)(uintptr_t)information->si_addr, 0, UINT32_MAX, 0, ""};

#if defined(__x86_64__)
    answer.is_write = (uint32_t)((((ucontext_t *)context)->uc_mcontext.gregs[REG_ERR] >> 1) & 1);
#else
    (void)context;
#endif
    for (uint32_t index = 0; index < lent.num_regions; ++index) {
        const uint64_t first = (uint64_t)(uintptr_t)lent.bases[index];
        const uint64_t offset = answer.address - first;

        /* The pages around a region belong to it: what is there is beside what was lent. */
        if (lent.bases[index] != NULL && offset + lent.page < lent.regions[index].size_bytes + 2u * lent.page) {
            answer.region = index;
            answer.offset = offset;
        }
    }
    reply(&answer);
    _exit(1);
}

static void catch_faults(void)
{
    static char stack[65536];
    const int numbers[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE};
    stack_t alternative;
    struct sigaction action;

    memset(&alternative, 0, sizeof alternative);
    alternative.ss_sp = stack;
    alternative.ss_size = sizeof stack;
    sigaltstack(&alternative, NULL);
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    for (size_t index = 0; index < sizeof numbers / sizeof *numbers; ++index) {
        sigaction(numbers[index], &action, NULL);
    }
}

/* Keeps anything from being mapped at addresses; false where something is already, if only this. */
static int forbid(uint64_t first, uint64_t size_bytes)
{
    void *const there = (void *)(uintptr_t)first;
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;

    return mmap(there, size_bytes, PROT_NONE, flags, -1, 0) == there;
}

static int is_readable(uint64_t address)
{
    int ends[2];
    ssize_t written;

    if (pipe(ends) != 0) {
        return 1;
    }
    written = write(ends[1], (const void *)(uintptr_t)address, 1); /* the system looks at it, and says if it cannot */
    close(ends[0]);
    close(ends[1]);
    return written == 1;
}

/* Maps the regions, each between two pages of its own without access. Nothing is ever at the addresses of the driver's process. */
static int map_regions(void)
{
    const size_t page = lent.page;
    size_t at = page;

    if (lent.reserved != NULL) {
        munmap(lent.reserved, lent.reserved_bytes + page);
    }
    for (uint32_t index = 0; index < lent.num_regions; ++index) {
        const uint64_t first = lent.regions[index].forbidden;
        const uint64_t end = first + lent.regions[index].forbidden_bytes;

        if (forbid(first, end - first)) {
            continue;
        }
        for (uint64_t address = first; address < end; address += page) {
            if (!forbid(address, page) && is_readable(address)) {
                errno = EEXIST;
                return -1;
            }
        }
    }
    lent.reserved_bytes = 0;
    for (uint32_t index = 0; index < lent.num_regions; ++index) {
        lent.reserved_bytes += lent.regions[index].size_bytes + 2 * page;
    }
    lent.reserved = mmap(NULL, lent.reserved_bytes + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (lent.reserved == MAP_FAILED) {
        lent.reserved = NULL;
        return -1;
    }
    for (uint32_t index = 0; index < lent.num_regions; ++index) {
        const worker_region *const region = &lent.regions[index];
        const int rights = (region->access & JOB_WRITE) != 0 ? PROT_READ | PROT_WRITE : PROT_READ;

        lent.bases[index] = mmap(lent.reserved + at, region->size_bytes, rights, MAP_SHARED | MAP_FIXED,
                                 WORKER_MEMORY + (int)region->memory, (off_t)region->offset);
        if (lent.bases[index] == MAP_FAILED) {
            return -1;
        }
        at += region->size_bytes + 2 * page;
    }
    return 0;
}

#ifndef WORKER_EXECUTE
typedef struct {
    void *base;
    uint32_t size_bytes;
    uint32_t access;
} worker_own_span;
#define WORKER_SPAN worker_own_span

/* A device that only copies: the second span to the first. */
static int32_t copy(const void *code, uint32_t code_bytes, const WORKER_SPAN *spans, uint32_t num_spans)
{
    if (code != NULL || code_bytes != 0 || num_spans != 2 || spans[0].size_bytes != spans[1].size_bytes) {
        return -1;
    }
    memmove(spans[0].base, spans[1].base, spans[1].size_bytes);
    return 0;
}
#define WORKER_EXECUTE copy
#endif

int main(void)
{
    static worker_span given[MOST_SPANS];
    static WORKER_SPAN spans[MOST_SPANS];

    lent.page = (size_t)sysconf(_SC_PAGESIZE);
    catch_faults();
    for (;;) {
        worker_reply answer = {JOB_FINE, 0, 0, 0, UINT32_MAX, 0, ""};
        worker_message message;
        void *code = NULL;

        receive(&message, sizeof message);
        if (message.command == JOB_OPEN) {
            if (message.num_items > MOST_REGIONS) {
                return 1;
            }
            lent.num_regions = message.num_items;
            receive(lent.regions, message.num_items * sizeof *lent.regions);
            answer.outcome = map_regions() == 0 ? JOB_FINE : JOB_NOT_STARTED;
            answer.status = errno;
            reply(&answer);
            continue;
        }
        if (message.num_items > MOST_SPANS) {
            return 1;
        }
        receive(given, message.num_items * sizeof *given);
        if (message.has_code != 0) {
            code = malloc(message.code_bytes + 1);
            if (code == NULL) {
                return 1;
            }
            receive(code, message.code_bytes);
        }
        for (uint32_t index = 0; index < message.num_items; ++index) {
            spans[index].base = lent.bases[given[index].region] + given[index].offset;
            spans[index].size_bytes = (uint32_t)given[index].size_bytes;
            spans[index].access = given[index].access;
        }
        answer.status = WORKER_EXECUTE(code, (uint32_t)message.code_bytes, spans, message.num_items);
        free(code);
        reply(&answer);
    }
}
