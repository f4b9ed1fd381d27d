/* What a run on the host knows of the other devices of a model, beside their hooks, which harness.h declares. */
#ifndef BYTEWRIGHT_HOST_DEVICES_H
#define BYTEWRIGHT_HOST_DEVICES_H

#include "harness.h"

enum {
    HARNESS_DEVICE_FINE = 0,
    HARNESS_DEVICE_NOT_STARTED = 1, /* status: errno */
    HARNESS_DEVICE_NOT_LENT = 2,    /* a span of a job, at address, lies in no memory that was opened */
    HARNESS_DEVICE_FAULTED = 3,     /* status: the signal; address, is_write */
    HARNESS_DEVICE_STRAYED = 4,     /* the byte at address, which is of no span that the job may write, is another */
    HARNESS_DEVICE_REFUSED = 5,     /* status: what the bundle's function returned */
    HARNESS_DEVICE_HUNG = 6,
    HARNESS_DEVICE_ENDED = 7,       /* status: exit status, or a signal below 0 */
    HARNESS_DEVICE_MISUSED = 8
};

typedef struct {
    uint32_t kind;
    uint32_t job; /* the first of a run is 1 */
    int32_t status;
    uint32_t span;
    uint32_t has_code;
    uint32_t code_word; /* the first of the job's code: of a device that runs C, the kernel */
    uint32_t is_write;
    uint32_t is_raw;  /* the address is the model's own for what is there, and means nothing to the device */
    uint64_t address; /* as the device has it, or of a span as the model has it */
    uint32_t region;  /* the memory that it is in or beside, among those of `open`; UINT32_MAX for none of them */
    int64_t offset;   /* from the first byte of that */
    uint32_t device;  /* its place among the devices */
    uint32_t memory;  /* of a span that was not lent: the number of the devices' memory, in which address is an offset */
    char reason[512]; /* of HARNESS_DEVICE_REFUSED, where one is known; else empty */
} harness_device_failure;

/* What the last run that a device ended failed at. */
HARNESS_EXPORT const harness_device_failure *harness_failure_of_device(void);

/* Ends the processes of all devices; the next run begins them again. */
HARNESS_EXPORT void harness_stop_devices(void);

#endif
