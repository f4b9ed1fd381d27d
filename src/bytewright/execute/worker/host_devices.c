/* The drivers of the other devices of a model on the host: each is a process that has what it is lent, and no more.
 *
 * What a job is given is copied to memory that driver and process share, and what it may write is copied back. There each
 * memory that was lent ends where pages begin that nobody may touch, constants cannot be written, and the bytes beside
 * what a job may write are compared when it is done. So a device that goes beyond what it is given is noticed, as it
 * would be by a memory protection unit, and by bytes where that knows granules. What devices have among themselves is in
 * files of its own, which this process does not map (`device_memories.c`).
 */
#define _GNU_SOURCE

#include "host_devices.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device_memories.h"
#include "device_process.h"
#include "worker.h"

#if HARNESS_NUM_DEVICE_MEMORIES > 0
#define MEMORY_OF(span) ((span)->memory)
#define OFFSET_OF(span) ((span)->offset)
#else
#define MEMORY_OF(span) ((void)(span), 0u)
#define OFFSET_OF(span) ((void)(span), 0u)
#endif

enum { MOST_REGIONS = 256, MOST_SPANS = 1024, POISON = 0x5C };

/* A memory that is lent: where the model has it, and where it lies in what is shared; or a part of one of the devices. */
typedef struct {
    unsigned char *base;
    uint32_t memory; /* its number, of one of the devices */
    uint32_t first;  /* the offset of the part */
    size_t size_bytes;
    uint32_t access;
    size_t offset;       /* of its pages in the shared memory, or in the device's */
    size_t kept;         /* of its pages in what the driver keeps of all regions */
    size_t mapped_bytes; /* of its pages */
    size_t begin;        /* of its bytes in its pages */
} lent_region;

typedef struct {
    device_process process;
    int is_open, is_in_flight;
    uint32_t num_jobs;
    uint32_t num_regions;
    lent_region regions[MOST_REGIONS];
    unsigned char *shared; /* all pages, as the driver maps them */
    unsigned char *before; /* what all regions held when the job began */
    unsigned char *now;    /* what those of devices hold when it is done */
    size_t shared_bytes;
    uint32_t num_spans;
    worker_span spans[MOST_SPANS];
} driver;

#define COMMAND(index, member, ...) static const char *const command_##index[] = {__VA_ARGS__, NULL};
HARNESS_DEVICES(COMMAND)

#define DRIVER(index, member, ...) [index] = {{command_##index, 0, -1, -1, -1}, 0, 0, 0, 0, {{0}}, 0, 0, 0, 0, 0, {{0}}},
static driver drivers[] = {HARNESS_DEVICES(DRIVER)};

static job_failure failure;

const job_failure *harness_failure_of_device(void)
{
    return &failure;
}

static int32_t fail(const driver *device, uint32_t kind)
{
    failure.kind = kind;
    failure.device = (uint32_t)(device - drivers);
    failure.job = device->num_jobs;
    return -1;
}

static void give_back_pages(driver *device)
{
    if (device->shared != NULL) {
        munmap(device->shared, device->shared_bytes);
    }
    free(device->before);
    free(device->now);
    device->shared = device->before = device->now = NULL;
    device->num_regions = 0;
}

static void stop(driver *device)
{
    if (device->process.id != 0) {
        (void)end_device_process(&device->process, 1);
    }
    give_back_pages(device);
    device->is_open = 0;
    device->is_in_flight = 0;
}

/* The failure of a process that ended, with what there is to say of it. */
static int32_t fail_of_ending(driver *device)
{
    const int status = end_device_process(&device->process, 0);

    failure.status = WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
    stop(device);
    return fail(device, JOB_ENDED);
}

/* Sends what was made ready and waits; a process that failed is gone afterwards. */
static int32_t await_reply(driver *device, worker_reply *answer)
{
    const uint32_t kind = await_device_process(&device->process, answer);

    if (kind == JOB_ENDED) {
        return fail_of_ending(device);
    }
    if (kind != 0) {
        stop(device);
        return fail(device, kind);
    }
    return 0;
}

static int32_t activate(void *self)
{
    driver *const device = self;
    struct sigaction action;

    if (sigaction(SIGPIPE, NULL, &action) == 0 && action.sa_handler == SIG_DFL) {
        signal(SIGPIPE, SIG_IGN); /* a process that ended is told by what writing to it returns */
    }
    memset(&failure, 0, sizeof failure);
    failure.region = UINT32_MAX;
    device->num_jobs = 0;
    if (device->process.id == 0 && begin_device_process(&device->process) != 0) {
        failure.status = errno;
        return fail(device, JOB_NOT_STARTED);
    }
    return 0;
}

static int are_same(const driver *device, const HARNESS_MODEL(span) *memories, uint32_t num_memories)
{
    if (device->shared == NULL || device->num_regions != num_memories) {
        return 0;
    }
    for (uint32_t index = 0; index < num_memories; ++index) {
        const lent_region *const region = &device->regions[index];

        if (region->base != memories[index].base || region->memory != MEMORY_OF(&memories[index]) ||
            region->first != OFFSET_OF(&memories[index]) || region->size_bytes != memories[index].size_bytes ||
            region->access != memories[index].access) {
            return 0;
        }
    }
    return 1;
}

/* Lays the memories out, each at the end of its pages, as aligned as kernels may ask for. */
static int lay_out(driver *device, const HARNESS_MODEL(span) *memories, uint32_t num_memories)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t end = 0, kept = 0;

    give_back_pages(device);
    device->num_regions = num_memories;
    for (uint32_t index = 0; index < num_memories; ++index) {
        lent_region *const region = &device->regions[index];
        const size_t size_bytes = memories[index].size_bytes;
        const size_t misaligned = (size_t)((uintptr_t)memories[index].base % HARNESS_DEVICE_ALIGNMENT);
        const device_memory *const other = find_device_memory(MEMORY_OF(&memories[index]));

        region->base = memories[index].base;
        region->memory = MEMORY_OF(&memories[index]);
        region->first = OFFSET_OF(&memories[index]);
        region->size_bytes = size_bytes;
        region->access = memories[index].access;
        region->kept = kept;
        if (other != NULL) {
            region->offset = 0;
            region->mapped_bytes = other->mapped_bytes;
            region->begin = other->begin + region->first;
            kept += region->mapped_bytes;
            continue;
        }
        region->offset = end;
        region->mapped_bytes = (size_bytes + HARNESS_DEVICE_ALIGNMENT + page - 1) / page * page;
        region->begin = (region->mapped_bytes - size_bytes - misaligned) / HARNESS_DEVICE_ALIGNMENT * HARNESS_DEVICE_ALIGNMENT + misaligned;
        end += region->mapped_bytes;
        kept += region->mapped_bytes;
    }
    device->shared_bytes = end == 0 ? page : end;
    if (ftruncate(device->process.memory, (off_t)device->shared_bytes) != 0) {
        return -1;
    }
    device->shared = mmap(NULL, device->shared_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, device->process.memory, 0);
    if (device->shared == MAP_FAILED) {
        device->shared = NULL;
        return -1;
    }
    memset(device->shared, POISON, device->shared_bytes);
    device->before = malloc(kept + 1);
    device->now = malloc(kept + 1);
    return device->before == NULL || device->now == NULL ? -1 : 0;
}

/* Obtains what this device is to obtain; what others obtained is there already. */
static int32_t obtain(driver *device, const HARNESS_MODEL(span) *memories, uint32_t num_memories)
{
    for (uint32_t index = 0; index < num_memories; ++index) {
        const uint32_t number = MEMORY_OF(&memories[index]);
        const device_memory *const memory = find_device_memory(number);

        if ((memories[index].access & JOB_OBTAIN) != 0u) {
            if (obtain_device_memory(number, memories[index].size_bytes, POISON, device) != 0) {
                failure.status = errno;
                return fail(device, JOB_NOT_STARTED);
            }
        } else if (number != 0u && (memory == NULL || memory->owner == NULL)) {
            return fail(device, JOB_OUT_OF_TURN);
        }
    }
    return 0;
}

static int32_t share_memories(driver *device, const HARNESS_MODEL(span) *memories, uint32_t num_memories)
{
    static worker_region regions[MOST_REGIONS];
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    worker_message message = {JOB_OPEN, num_memories, 0, 0, 0};
    worker_reply answer;

    if (are_same(device, memories, num_memories)) {
        return 0;
    }
    if (num_memories > MOST_REGIONS || lay_out(device, memories, num_memories) != 0) {
        failure.status = errno;
        return fail(device, JOB_NOT_STARTED);
    }
    message.code_bytes = device->shared_bytes;
    for (uint32_t index = 0; index < num_memories; ++index) {
        const lent_region *const region = &device->regions[index];
        const uint64_t first = (uint64_t)(uintptr_t)region->base / page * page;
        const uint64_t end = ((uint64_t)(uintptr_t)region->base + region->size_bytes + page - 1) / page * page;
        const worker_region sent = {region->offset, region->mapped_bytes, first, region->memory == 0u ? end - first : 0,
                                    region->access, region->memory};

        regions[index] = sent;
    }
    if (send_to_device_process(&device->process, &message, sizeof message) != 0 ||
        send_to_device_process(&device->process, regions, num_memories * sizeof *regions) != 0) {
        return fail_of_ending(device);
    }
    if (await_reply(device, &answer) != 0) {
        return -1;
    }
    if (answer.outcome != JOB_FINE) {
        failure.status = answer.status;
        stop(device);
        return fail(device, JOB_NOT_STARTED);
    }
    return 0;
}

static int32_t open_memories(void *self, const HARNESS_MODEL(span) *memories, uint32_t num_memories)
{
    driver *const device = self;

    if (obtain(device, memories, num_memories) != 0 || share_memories(device, memories, num_memories) != 0) {
        release_device_memories(device);
        return -1;
    }
    device->is_open = 1;
    return 0;
}

/* The region that a span lies in, with all that it asks for; else what is wrong with it. */
static int32_t find_region(driver *device, const HARNESS_MODEL(span) *span, worker_span *found)
{
    for (uint32_t index = 0; index < device->num_regions; ++index) {
        const lent_region *const region = &device->regions[index];
        const uintptr_t at = MEMORY_OF(span) != 0u ? OFFSET_OF(span) : (uintptr_t)span->base;
        const uintptr_t first = region->memory != 0u ? region->first : (uintptr_t)region->base;
        const size_t offset = (size_t)(at - first);

        if (MEMORY_OF(span) == region->memory && at >= first && offset <= region->size_bytes &&
            span->size_bytes <= region->size_bytes - offset && (span->access & ~region->access) == 0u) {
            found->region = index;
            found->access = span->access;
            found->offset = region->begin + offset;
            found->size_bytes = span->size_bytes;
            return 0;
        }
    }
    failure.memory = MEMORY_OF(span);
    failure.address = failure.memory != 0u ? OFFSET_OF(span) : (uint64_t)(uintptr_t)span->base;
    return fail(device, JOB_NOT_LENT);
}

/* All that is in the pages of a region. */
static const unsigned char *content_of(const driver *device, const lent_region *region)
{
    if (region->memory == 0u) {
        return device->shared + region->offset;
    }
    (void)read_device_memory(find_device_memory(region->memory), device->now + region->kept);
    return device->now + region->kept;
}

static int32_t launch(void *self, const HARNESS_MODEL(job) *job)
{
    driver *const device = self;
    worker_message message = {JOB_EXECUTE, job->num_spans, job->code_bytes, job->code != NULL, 0};

    device->num_jobs += 1;
    failure.code_word = 0;
    if (job->code != NULL && job->code_bytes >= sizeof failure.code_word) {
        memcpy(&failure.code_word, job->code, sizeof failure.code_word);
        failure.has_code = 1;
    }
    if (!device->is_open || device->is_in_flight || job->num_spans > MOST_SPANS) {
        return fail(device, JOB_OUT_OF_TURN);
    }
    device->num_spans = job->num_spans;
    for (uint32_t index = 0; index < job->num_spans; ++index) {
        failure.span = index;
        if (find_region(device, &job->spans[index], &device->spans[index]) != 0) {
            return -1;
        }
    }
    for (uint32_t index = 0; index < job->num_spans; ++index) {
        const worker_span *const span = &device->spans[index];

        if (device->regions[span->region].memory == 0u) {
            memcpy(device->shared + device->regions[span->region].offset + span->offset, job->spans[index].base,
                   span->size_bytes);
        }
    }
    for (uint32_t index = 0; index < device->num_regions; ++index) {
        const lent_region *const region = &device->regions[index];

        if ((region->access & JOB_WRITE) != 0u) {
            memcpy(device->before + region->kept, content_of(device, region), region->mapped_bytes);
        }
    }
    if (send_to_device_process(&device->process, &message, sizeof message) != 0 ||
        send_to_device_process(&device->process, device->spans, job->num_spans * sizeof *device->spans) != 0 ||
        (job->code != NULL && send_to_device_process(&device->process, job->code, job->code_bytes) != 0)) {
        return fail_of_ending(device);
    }
    device->is_in_flight = 1;
    return 0;
}

/* The end of the bytes from `at` on that the job may write: `at` itself where it may not write that byte. */
static size_t written_until(const driver *device, uint32_t index, size_t at)
{
    size_t end = at;

    for (uint32_t number = 0; number < device->num_spans; ++number) {
        const worker_span *const span = &device->spans[number];

        if (span->region == index && (span->access & JOB_WRITE) != 0u && span->offset <= at &&
            at < span->offset + span->size_bytes && end < span->offset + span->size_bytes) {
            end = (size_t)(span->offset + span->size_bytes);
        }
    }
    return end;
}

/* Where the next bytes begin that the job may write, from `at` on. */
static size_t kept_until(const driver *device, uint32_t index, size_t at, size_t end)
{
    for (uint32_t number = 0; number < device->num_spans; ++number) {
        const worker_span *const span = &device->spans[number];

        if (span->region == index && (span->access & JOB_WRITE) != 0u && span->offset >= at && span->offset < end) {
            end = (size_t)span->offset;
        }
    }
    return end;
}

/* Compares all that the job may not write with what it was. */
static int32_t compare_kept(driver *device)
{
    for (uint32_t index = 0; index < device->num_regions; ++index) {
        const lent_region *const region = &device->regions[index];
        const unsigned char *const now = content_of(device, region);
        const unsigned char *const before = device->before + region->kept;
        size_t at = (region->access & JOB_WRITE) != 0u ? 0 : region->mapped_bytes;

        while (at < region->mapped_bytes) {
            const size_t written = written_until(device, index, at);
            size_t end;

            if (written > at) {
                at = written;
                continue;
            }
            end = kept_until(device, index, at, region->mapped_bytes);
            if (memcmp(now + at, before + at, end - at) != 0) {
                while (now[at] == before[at]) {
                    ++at;
                }
                failure.region = index;
                failure.offset = (int64_t)at - (int64_t)region->begin;
                failure.is_write = 1;
                return fail(device, JOB_STRAYED);
            }
            at = end;
        }
    }
    return 0;
}

static int32_t note_fault(driver *device, const worker_reply *answer)
{
    failure.status = answer->status;
    failure.address = answer->address;
    failure.is_write = answer->is_write;
    if (answer->region < device->num_regions) {
        failure.region = answer->region;
        failure.offset = (int64_t)answer->offset - (int64_t)device->regions[answer->region].begin;
    }
    for (uint32_t index = 0; index < device->num_regions && failure.region == UINT32_MAX; ++index) {
        const lent_region *const region = &device->regions[index];
        const uint64_t offset = answer->address - (uint64_t)(uintptr_t)region->base;

        if (region->memory == 0u && offset < region->size_bytes) {
            failure.region = index;
            failure.offset = (int64_t)offset;
            failure.is_raw = 1;
        }
    }
    stop(device);
    return fail(device, JOB_FAULTED);
}

static int32_t await_job(void *self)
{
    driver *const device = self;
    worker_reply answer;

    if (!device->is_in_flight) {
        return fail(device, JOB_OUT_OF_TURN);
    }
    device->is_in_flight = 0;
    if (await_reply(device, &answer) != 0) {
        return -1;
    }
    if (answer.outcome != JOB_FINE) {
        return note_fault(device, &answer);
    }
    if (answer.status != 0) {
        failure.status = answer.status;
        memcpy(failure.reason, answer.reason, sizeof failure.reason - 1);
        return fail(device, JOB_REFUSED);
    }
    if (compare_kept(device) != 0) {
        stop(device);
        return -1;
    }
    for (uint32_t index = 0; index < device->num_spans; ++index) {
        const worker_span *const span = &device->spans[index];
        const lent_region *const region = &device->regions[span->region];

        if ((span->access & JOB_WRITE) != 0u && region->memory == 0u) {
            memcpy(region->base + (span->offset - region->begin), device->shared + region->offset + span->offset,
                   span->size_bytes);
        }
    }
    return 0;
}

static void close_memories(void *self)
{
    ((driver *)self)->is_open = 0;
    release_device_memories(self);
}

#define HOOKS(index, member, ...) \
    .member = {&drivers[index], activate, open_memories, launch, await_job, close_memories, NULL},
const HARNESS_MODEL(devices) harness_devices = {HARNESS_DEVICES(HOOKS)};

void harness_stop_devices(void)
{
    for (size_t index = 0; index < sizeof drivers / sizeof *drivers; ++index) {
        stop(&drivers[index]);
    }
    forget_device_memories();
}
