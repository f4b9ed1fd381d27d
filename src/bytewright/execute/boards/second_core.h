/* What the two cores of a board say to each other: one mailbox in memory that both reach.
 *
 * Core 0 writes a command and counts `request` up, rings, and waits until `served` has caught up; core 1 sleeps
 * in between. Addresses of memory in it are those of core 1.
 */
#ifndef BYTEWRIGHT_SECOND_CORE_H
#define BYTEWRIGHT_SECOND_CORE_H

/* By offset, for assembly. */
#define SECOND_CORE_REQUEST 0
#define SECOND_CORE_SERVED 4
#define SECOND_CORE_STATUS 8

/* The message units of the SSE-200, through their Secure addresses: unit 0 rings core 1, unit 1 rings core 0. */
#define SECOND_CORE_RING 0x50003014      /* MHU0, CPU1INTR_SET */
#define SECOND_CORE_RING_CLEAR 0x50003018
#define SECOND_CORE_REPLY 0x50004004     /* MHU1, CPU0INTR_SET */
#define SECOND_CORE_REPLY_CLEAR 0x50004008
#define SECOND_CORE_RING_INTERRUPT 6
#define SECOND_CORE_REPLY_INTERRUPT 7

#define NVIC_ISER 0xE000E100
#define NVIC_ICER 0xE000E180
#define NVIC_ICPR 0xE000E280

#ifndef __ASSEMBLER__

#include "harness.h"
#include "jobs.h"

enum { SECOND_CORE_MOST_SPANS = 64, SECOND_CORE_MOST_CODE_BYTES = 256 };
struct second_core_fault {
    uint32_t cfsr;
    uint32_t hfsr;
    uint32_t mmfar;
    uint32_t bfar;
    uint32_t sfsr;
    uint32_t icsr;
    uint32_t has_frame;
    uint32_t lr;
    uint32_t pc;
};

struct second_core_mailbox {
    uint32_t request; /* by core 0 */
    uint32_t served;  /* by core 1 */
    int32_t status;
    uint32_t command;
    job_failure failure; /* `job` counts those that were launched in this run */
    uint32_t code_bytes; /* 0: the job has no code */
    uint32_t num_spans;
    struct second_core_fault fault;
    /* What kernels can read, which shares no granule: the job's code, and its spans, or those that are opened. */
    struct second_core_lent {
        uint32_t code[SECOND_CORE_MOST_CODE_BYTES / 4];
        HARNESS_MODEL(span) spans[SECOND_CORE_MOST_SPANS];
    } lent __attribute__((aligned(32)));
} __attribute__((aligned(32)));

extern struct second_core_mailbox second_core_mailbox;

/* Before the first run, by privileged code: releases core 1, which says when it is ready. */
void second_core_start(void);
/* The deepest stack of core 1 so far. */
uint32_t second_core_stack_bytes(void);

/* In startup.S: supervisor calls, from the hooks alone. */
void second_core_ring(void);
void second_core_await(void);

/* On core 1. */
int32_t second_core_serve(struct second_core_mailbox *mailbox);
int32_t second_core_call(const void *code, uint32_t code_bytes, const HARNESS_MODEL(span) *spans, uint32_t num_spans);
void second_core_begin(void);
void second_core_note_fault(const uint32_t *frame);

#endif
#endif
