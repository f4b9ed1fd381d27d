/* A device of a run on the host as a process: how it begins and ends, and what is sent and answered. */
#ifndef BYTEWRIGHT_DEVICE_PROCESS_H
#define BYTEWRIGHT_DEVICE_PROCESS_H

#include <stddef.h>
#include <sys/types.h>

#include "worker.h"

typedef struct {
    const char *const *command;
    pid_t id; /* 0 for none */
    int commands, replies, memory;
} device_process;

/* Begins it, with nothing of this one but three descriptors, and those of the devices' memories. Returns 0 or -1. */
int begin_device_process(device_process *process);

/* Waits until it has ended, which it is made to if it is killed. Returns what `waitpid` says of it. */
int end_device_process(device_process *process, int is_killed);

/* Returns 0, or -1 where it takes no more. */
int send_to_device_process(const device_process *process, const void *from, size_t size_bytes);

/* Waits for the reply. Returns 0, or the failure: none within the time, or the process ended. */
uint32_t await_device_process(const device_process *process, worker_reply *answer);

#endif
