#define _GNU_SOURCE

#include "device_memories.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "harness_model.h"

static device_memory memories[HARNESS_NUM_DEVICE_MEMORIES + 1];
static int are_known;

static device_memory *find(uint32_t number)
{
    if (!are_known) {
        for (size_t index = 0; index < sizeof memories / sizeof *memories; ++index) {
            memories[index].file = -1;
        }
        are_known = 1;
    }
    if (number == 0 || number > HARNESS_NUM_DEVICE_MEMORIES) {
        return NULL;
    }
    if (memories[number].file < 0) {
        memories[number].file = memfd_create("bytewright-device-memory", MFD_CLOEXEC);
    }
    return memories[number].file < 0 ? NULL : &memories[number];
}

const device_memory *find_device_memory(uint32_t number)
{
    return find(number);
}

int obtain_device_memory(uint32_t number, size_t size_bytes, unsigned char value, const void *owner)
{
    device_memory *const memory = find(number);
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char bytes[256];

    if (memory == NULL || memory->owner != NULL) {
        return -1;
    }
    memory->mapped_bytes = (size_bytes + HARNESS_DEVICE_ALIGNMENT + page - 1) / page * page;
    memory->begin = (memory->mapped_bytes - size_bytes) / HARNESS_DEVICE_ALIGNMENT * HARNESS_DEVICE_ALIGNMENT;
    if (ftruncate(memory->file, (off_t)memory->mapped_bytes) != 0) {
        return -1;
    }
    memory->owner = owner;
    memset(bytes, value, sizeof bytes);
    for (size_t at = 0; at < memory->mapped_bytes; at += sizeof bytes) { /* of a page, which is a multiple */
        if (pwrite(memory->file, bytes, sizeof bytes, (off_t)at) != (ssize_t)sizeof bytes) {
            release_device_memories(owner);
            return -1;
        }
    }
    return 0;
}

void release_device_memories(const void *owner)
{
    for (uint32_t number = 1; number <= HARNESS_NUM_DEVICE_MEMORIES; ++number) {
        device_memory *const memory = &memories[number];

        if (memory->owner == owner && memory->owner != NULL) {
            memory->owner = NULL;
            (void)!ftruncate(memory->file, 0);
        }
    }
}

int read_device_memory(const device_memory *memory, unsigned char *to)
{
    size_t at = 0;

    while (at < memory->mapped_bytes) {
        const ssize_t taken = pread(memory->file, to + at, memory->mapped_bytes - at, (off_t)at);

        if (taken <= 0) {
            return -1;
        }
        at += (size_t)taken;
    }
    return 0;
}

void forget_device_memories(void)
{
    for (uint32_t number = 1; are_known && number <= HARNESS_NUM_DEVICE_MEMORIES; ++number) {
        if (memories[number].file >= 0) {
            close(memories[number].file);
        }
        memories[number].file = -1;
        memories[number].owner = NULL;
    }
}
