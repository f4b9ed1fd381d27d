#define _GNU_SOURCE

#include "device_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "device_memories.h"
#include "harness_model.h"

enum { NUM_DESCRIPTORS = 3 + HARNESS_NUM_DEVICE_MEMORIES };

int begin_device_process(device_process *process)
{
    extern char **environ;
    int commands[2] = {-1, -1}, replies[2] = {-1, -1};
    const int memory = memfd_create("bytewright-device", MFD_CLOEXEC);
    posix_spawn_file_actions_t actions;
    int outcome = -1;

    if (memory >= 0 && pipe2(commands, O_CLOEXEC) == 0 && pipe2(replies, O_CLOEXEC) == 0) {
        /* Copies above those that the process has them at, so that none is written over before it is copied. */
        int high[NUM_DESCRIPTORS];

        posix_spawn_file_actions_init(&actions);
        for (uint32_t index = 0; index < NUM_DESCRIPTORS; ++index) {
            const int own[3] = {commands[0], replies[1], memory};
            const device_memory *const other = index < 3 ? NULL : find_device_memory(index - 2);
            const int file = index < 3 ? own[index] : other != NULL ? other->file : -1;

            high[index] = fcntl(file, F_DUPFD_CLOEXEC, WORKER_COMMANDS + NUM_DESCRIPTORS);
            posix_spawn_file_actions_adddup2(&actions, high[index], WORKER_COMMANDS + (int)index);
        }
        outcome = posix_spawn(&process->id, process->command[0], &actions, NULL, (char *const *)(uintptr_t)process->command,
                              environ);
        posix_spawn_file_actions_destroy(&actions);
        for (uint32_t index = 0; index < NUM_DESCRIPTORS; ++index) {
            close(high[index]);
        }
    }
    close(commands[0]);
    close(replies[1]);
    if (outcome != 0) {
        close(commands[1]);
        close(replies[0]);
        close(memory);
        process->id = 0;
        return -1;
    }
    process->commands = commands[1];
    process->replies = replies[0];
    process->memory = memory;
    return 0;
}

int end_device_process(device_process *process, int is_killed)
{
    int status = 0;

    if (is_killed) {
        kill(process->id, SIGKILL);
    }
    while (waitpid(process->id, &status, 0) < 0 && errno == EINTR) {
    }
    close(process->commands);
    close(process->replies);
    close(process->memory);
    process->id = 0;
    return status;
}

int send_to_device_process(const device_process *process, const void *from, size_t size_bytes)
{
    const char *bytes = from;

    while (size_bytes > 0) {
        const ssize_t written = write(process->commands, bytes, size_bytes);

        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            return -1;
        }
        bytes += written;
        size_bytes -= (size_t)written;
    }
    return 0;
}

static long milliseconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (long)now.tv_sec * 1000 + (long)(now.tv_nsec / 1000000);
}

uint32_t await_device_process(const device_process *process, worker_reply *answer)
{
    const long end = milliseconds() + HARNESS_DEVICE_TIMEOUT_MS;
    char *bytes = (char *)answer;
    size_t left = sizeof *answer;

    while (left > 0) {
        struct pollfd ready = {process->replies, POLLIN, 0};
        const long wait_ms = end - milliseconds();
        ssize_t taken;

        if (wait_ms <= 0 || poll(&ready, 1, (int)wait_ms) == 0) {
            return JOB_HUNG;
        }
        taken = read(process->replies, bytes, left);
        if (taken < 0 && errno == EINTR) {
            continue;
        }
        if (taken <= 0) {
            return JOB_ENDED;
        }
        bytes += taken;
        left -= (size_t)taken;
    }
    return 0;
}
