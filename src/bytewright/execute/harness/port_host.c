/* The harness's program on this machine, or on one whose system is emulated.
 *
 * Every buffer is its own heap block of exactly the stated size, so that the address sanitizer sees the first byte
 * outside. What is measured of a run is its nanoseconds. Also writes device_failure.bin, of the last run.
 */
#define _POSIX_C_SOURCE 200112L

#include "port.h"

#if HARNESS_NUM_DEVICES > 0
#include "host_devices.h"
#endif

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void *workspaces[HARNESS_NUM_WORKSPACES + 1];

static void stop(const char *what)
{
    fprintf(stderr, "harness: %s\n", what);
    exit(HARNESS_MACHINE_FAILED);
}

static void *allocate(size_t size_bytes, size_t alignment)
{
    void *block = NULL;

    if (posix_memalign(&block, alignment < sizeof(void *) ? sizeof(void *) : alignment, size_bytes == 0 ? 1 : size_bytes) != 0) {
        stop("out of memory");
    }
    return block;
}

int port_open(const char *path, int mode)
{
    const int file = open(path, mode == PORT_READ ? O_RDONLY : O_WRONLY | O_CREAT | O_TRUNC, 0666);

    if (file < 0) {
        stop("cannot open a file");
    }
    return file;
}

void port_read(int file, void *to, size_t size_bytes)
{
    for (size_t done = 0; done < size_bytes;) {
        const ssize_t taken = read(file, (char *)to + done, size_bytes - done);

        if (taken <= 0) {
            stop("a file is too short");
        }
        done += (size_t)taken;
    }
}

void port_write(int file, const void *from, size_t size_bytes)
{
    for (size_t done = 0; done < size_bytes;) {
        const ssize_t written = write(file, (const char *)from + done, size_bytes - done);

        if (written <= 0) {
            stop("cannot write a file");
        }
        done += (size_t)written;
    }
}

#if HARNESS_NUM_BLOBS > 0
static void *load_blob(const char *path, size_t alignment)
{
    const int file = port_open(path, PORT_READ);
    struct stat status;
    void *blob;

    if (fstat(file, &status) != 0) {
        stop("cannot read a parameter blob");
    }
    blob = allocate((size_t)status.st_size, alignment);
    port_read(file, blob, (size_t)status.st_size);
    close(file);
    return blob;
}
#endif

port_memory port_obtain_memory(void)
{
    static const void *blobs[HARNESS_NUM_BLOBS + 1];
    static void *copies[HARNESS_NUM_COPIES + 1];
    const port_memory memory = {workspaces, blobs, copies};

    for (int index = 0; index < HARNESS_NUM_WORKSPACES; ++index) {
        const size_t alignment = harness_workspace_alignment[index];
        const size_t guard_bytes = HARNESS_GUARD_BYTES(alignment);

        workspaces[index] = (char *)allocate(harness_workspace_size_bytes[index] + 2 * guard_bytes, alignment) + guard_bytes;
    }
#define LOAD_BLOB(index, member, path, alignment, section) blobs[index] = load_blob(path, alignment);
    HARNESS_BLOBS(LOAD_BLOB)
    for (int index = 0; index < HARNESS_NUM_COPIES; ++index) {
        copies[index] = allocate(harness_copy_size_bytes[index], harness_copy_alignment[index]);
    }
    return memory;
}

void *port_buffer(int index, size_t size_bytes)
{
    static void *buffers[HARNESS_NUM_INPUTS + HARNESS_NUM_OUTPUTS + 1];

    free(buffers[index]);
    buffers[index] = allocate(HARNESS_WHOLE_LINES(size_bytes), HARNESS_IO_ALIGNMENT);
    return buffers[index];
}

void port_exit(int status)
{
    exit(status);
}

#if HARNESS_NUM_DEVICES > 0
void harness_report_devices(void)
{
    char name[32];

    port_write(port_open("device_failure.bin", PORT_WRITE), harness_failure_of_device(), sizeof(job_failure));
    for (int index = 0; index < HARNESS_NUM_WORKSPACES; ++index) {
        snprintf(name, sizeof name, "workspace_%d", index);
        harness_report(name, (int64_t)(uintptr_t)workspaces[index]);
    }
}
#endif
