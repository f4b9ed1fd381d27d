/* What passes between the drivers of a run on the host and the processes that are its devices: messages over pipes.
 *
 * Memory that a device is lent lies in a file that both map, each region between pages that nobody may touch. Integers
 * are those of the machine.
 */
#ifndef BYTEWRIGHT_WORKER_H
#define BYTEWRIGHT_WORKER_H

#include "jobs.h"

/* Descriptors of the process: commands, replies, and the memory. Those that devices have among themselves follow, by
 * their numbers. */
enum { WORKER_COMMANDS = 3, WORKER_REPLIES = 4, WORKER_MEMORY = 5 };

typedef struct {
    uint32_t command; /* JOB_OPEN or JOB_EXECUTE */
    uint32_t num_items; /* regions or spans, which follow */
    uint64_t code_bytes; /* which follow the spans; of JOB_OPEN, the bytes of the memory */
    uint32_t has_code;
    uint32_t unused;
} worker_message;

/* Of JOB_OPEN: pages of the memory, or of that with a number of its own. What the driver's process has at `forbidden` is never mapped. */
typedef struct {
    uint64_t offset;
    uint64_t size_bytes;
    uint64_t forbidden;
    uint64_t forbidden_bytes;
    uint32_t access;
    uint32_t memory;
} worker_region;

/* Of JOB_EXECUTE. */
typedef struct {
    uint32_t region;
    uint32_t access;
    uint64_t offset; /* in the region */
    uint64_t size_bytes;
} worker_span;

typedef struct {
    uint32_t outcome; /* JOB_FINE if the device is still there */
    int32_t status;   /* what the device's function returned, or a signal's number */
    uint64_t address; /* that a fault was at */
    uint32_t is_write;
    uint32_t region;  /* that the address is in, of a fault; UINT32_MAX for none */
    uint64_t offset;  /* in the region */
    char reason[JOB_REASON_BYTES]; /* of a status that is not 0, where one is known; else empty */
} worker_reply;

#endif
