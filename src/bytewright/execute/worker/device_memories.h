/* Memories that devices have among themselves on the host: files that their processes map, and this one never does.
 *
 * One that was not obtained, or was released, has no bytes: a process that touches it then gets a SIGBUS.
 */
#ifndef BYTEWRIGHT_DEVICE_MEMORIES_H
#define BYTEWRIGHT_DEVICE_MEMORIES_H

#include <stddef.h>
#include <stdint.h>

/* As the bundle's header numbers them: 1 is the first. */
typedef struct {
    int file;            /* -1 for none yet */
    const void *owner;   /* the driver that obtained it; NULL for none */
    size_t mapped_bytes; /* whole pages, which it ends with */
    size_t begin;        /* of its bytes in them */
} device_memory;

/* The memory of a number; NULL if there is none. Its file is made where it is not there yet. */
const device_memory *find_device_memory(uint32_t number);

/* Gives a memory bytes, of some value. Returns 0, or -1 if it has an owner, or there are none left. */
int obtain_device_memory(uint32_t number, size_t size_bytes, unsigned char value, const void *owner);

/* Takes the bytes of all memories that an owner obtained. */
void release_device_memories(const void *owner);

/* Reads all pages of a memory. Returns 0 or -1. */
int read_device_memory(const device_memory *memory, unsigned char *to);

/* Closes the files. */
void forget_device_memories(void);

#endif
