/* What passes between the drivers of a run on the host and the processes that are its devices: messages over pipes.
 *
 * Memory that a device is lent lies in a file that both map, each region between pages that nobody may touch. Integers
 * are those of the machine.
 */
#ifndef BYTEWRIGHT_WORKER_H
#define BYTEWRIGHT_WORKER_H

#include <stdint.h>

/* Descriptors of the process: commands, replies, and the memory. Those that devices have among themselves follow, by
 * their numbers. */
enum { WORKER_COMMANDS = 3, WORKER_REPLIES = 4, WORKER_MEMORY = 5 };
enum { WORKER_OPEN = 1, WORKER_EXECUTE = 2 };
enum { WORKER_READ = 1, WORKER_WRITE = 2 };
/* Bytes of the reason for which a job is refused, in UTF-8, with the zero behind it. */
enum { WORKER_REASON_BYTES = 512 };
enum { WORKER_DONE = 0, WORKER_FAULTED = 1, WORKER_NO_MEMORY = 2, WORKER_OUT_OF_REACH = 3, WORKER_FAILED = 4 };

typedef struct {
    uint32_t command;
    uint32_t num_items; /* regions or spans, which follow */
    uint64_t code_bytes; /* which follow the spans; of WORKER_OPEN, the bytes of the memory */
    uint32_t has_code;
    uint32_t unused;
} worker_message;

/* Of WORKER_OPEN: pages of the memory, or of that with a number of its own. What the driver's process has at `forbidden` is never mapped. */
typedef struct {
    uint64_t offset;
    uint64_t size_bytes;
    uint64_t forbidden;
    uint64_t forbidden_bytes;
    uint32_t access;
    uint32_t memory;
} worker_region;

/* Of WORKER_EXECUTE. */
typedef struct {
    uint32_t region;
    uint32_t access;
    uint64_t offset; /* in the region */
    uint64_t size_bytes;
} worker_span;

typedef struct {
    uint32_t outcome;
    int32_t status;   /* what the device's function returned, or a signal's number */
    uint64_t address; /* that a fault was at */
    uint32_t is_write;
    uint32_t region;  /* that the address is in, of WORKER_OUT_OF_REACH and of a fault; UINT32_MAX for none */
    uint64_t offset;  /* in the region */
    char reason[WORKER_REASON_BYTES]; /* of a status that is not 0, where one is known; else empty */
} worker_reply;

#endif
