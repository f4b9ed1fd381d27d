/* The protocol of jobs: what a driver asks of its device, and how a device ends a run.
 *
 * Devices that are processes of this machine and a board's second core have it in common; how a message travels is the
 * driver's own.
 */
#ifndef BYTEWRIGHT_JOBS_H
#define BYTEWRIGHT_JOBS_H

#include <stdint.h>

enum job_command { JOB_ACTIVATE = 1, JOB_OPEN, JOB_EXECUTE, JOB_CLOSE };

/* What a device may do with a span, and that it is to obtain the memory: the bits of <M>_SPAN_READ and so on. */
enum { JOB_READ = 1, JOB_WRITE = 2, JOB_OBTAIN = 4 };

/* Why a hook returned an error. */
enum job_failure_kind {
    JOB_FINE,
    JOB_NOT_STARTED,      /* status: the system's error */
    JOB_UNREACHED,        /* a span, at address, is in no memory that the target gives to the device */
    JOB_NOT_LENT,         /* a span, at address, lies in no memory that was opened for this access */
    JOB_TOO_MANY_SPANS,   /* span: how many, which no message holds; or there is more code */
    JOB_TOO_MANY_REGIONS, /* span: how many, which the device's memory protection does not have */
    JOB_FAULTED,          /* status: the signal, if there is one; address, is_write */
    JOB_STRAYED,          /* the byte at address, which is of no span that the job may write, is another */
    JOB_REFUSED,          /* status: what the bundle's function returned */
    JOB_HUNG,
    JOB_ENDED,            /* status: exit status, or a signal below 0 */
    JOB_OUT_OF_TURN
};

/* Bytes of the reason for which a job is refused, in UTF-8, with the zero behind it. */
enum { JOB_REASON_BYTES = 512 };

/* What the last run failed at, if a device ended it. */
typedef struct {
    uint32_t kind; /* enum job_failure_kind */
    uint32_t job;  /* the first of a run is 1 */
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
    char reason[JOB_REASON_BYTES]; /* of JOB_REFUSED, where one is known; else empty */
} job_failure;

#endif
