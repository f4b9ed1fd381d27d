/* The harness as a program: inputs from a file, outputs and times to files, any number of inferences.
 *
 * Every buffer is its own heap block of exactly the stated size, so that the address sanitizer sees the first
 * byte outside; inputs and outputs have the size of the inference's extents. In the files each takes the bytes of its
 * largest shape. Usage: program NUM_INFERENCES NUM_REPETITIONS. Reads inputs.bin; writes outputs.bin and times.bin.
 * The exit status is 0, 1 when the machine failed, 2 when the model returned an error (printed as "status N"),
 * or 3 when a paranoid run found something.
 */
#define _POSIX_C_SOURCE 200112L

#include "harness.h"

#ifdef HARNESS_DEVICES_TYPE
#include "host_devices.h"
#endif

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void stop(const char *what)
{
    fprintf(stderr, "harness: %s\n", what);
    exit(1);
}

#ifdef HARNESS_DEVICES_TYPE
static void print_failure_of_device(void *const *workspaces)
{
    const harness_device_failure *const failure = harness_failure_of_device();

    printf("device_kind %lu\ndevice_job %lu\n", (unsigned long)failure->kind, (unsigned long)failure->job);
    printf("device_status %ld\ndevice_span %lu\n", (long)failure->status, (unsigned long)failure->span);
    printf("device_has_code %lu\n", (unsigned long)failure->has_code);
    printf("device_code_word %lu\n", (unsigned long)failure->code_word);
    printf("device_is_write %lu\n", (unsigned long)failure->is_write);
    printf("device_is_raw %lu\n", (unsigned long)failure->is_raw);
    printf("device_address %llu\n", (unsigned long long)failure->address);
    printf("device_region %lu\n", (unsigned long)failure->region);
    printf("device_offset %lld\n", (long long)failure->offset);
    printf("device_memory %lu\n", (unsigned long)failure->memory);
    printf("device_device %lu\ndevice_reason 0x0", (unsigned long)failure->device);
    for (const char *byte = failure->reason; *byte != '\0'; ++byte) { /* text as one number, as all facts are */
        printf("%02x", (unsigned)(unsigned char)*byte);
    }
    printf("\n");
    for (int index = 0; index < HARNESS_NUM_WORKSPACES; ++index) {
        printf("workspace_%d %llu\n", index, (unsigned long long)(uintptr_t)workspaces[index]);
    }
}
#else
#define print_failure_of_device(workspaces) (void)(workspaces)
#endif

static void check(int32_t status, void *const *workspaces)
{
    if (status < 0) {
        printf("status %ld\n", (long)status);
        print_failure_of_device(workspaces);
        exit(2);
    }
}

static void *allocate(size_t size_bytes, size_t alignment)
{
    void *block = NULL;

    if (posix_memalign(&block, alignment < sizeof(void *) ? sizeof(void *) : alignment, size_bytes == 0 ? 1 : size_bytes) != 0) {
        stop("out of memory");
    }
    return block;
}

static FILE *open_file(const char *path, const char *mode)
{
    FILE *const file = fopen(path, mode);

    if (file == NULL) {
        stop("cannot open a file");
    }
    return file;
}

#if HARNESS_NUM_BLOBS > 0
static void *load_blob(const char *path, size_t alignment)
{
    FILE *const file = open_file(path, "rb");
    const long size_bytes = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    void *blob;

    if (size_bytes < 0) {
        stop("cannot read a parameter blob");
    }
    rewind(file);
    blob = allocate((size_t)size_bytes, alignment);
    if (fread(blob, 1, (size_t)size_bytes, file) != (size_t)size_bytes) {
        stop("cannot read a parameter blob");
    }
    fclose(file);
    return blob;
}
#endif

static void read_input(FILE *file, void *input, size_t size_bytes, size_t largest_bytes)
{
    if (fread(input, 1, size_bytes, file) != size_bytes || fseek(file, (long)(largest_bytes - size_bytes), SEEK_CUR) != 0) {
        stop("the input file is too short");
    }
}

static void write_output(FILE *file, const void *output, size_t size_bytes, size_t largest_bytes)
{
    bool is_written = fwrite(output, 1, size_bytes, file) == size_bytes;

    for (size_t padding_bytes = largest_bytes - size_bytes; is_written && padding_bytes != 0; --padding_bytes) {
        is_written = fputc(0, file) != EOF;
    }
    if (!is_written) {
        stop("cannot write the outputs");
    }
}

#if HARNESS_PARANOID
static void print_number(const char *name, uint32_t value)
{
    printf("%s %lu\n", name, (unsigned long)value);
}

void harness_violated(void)
{
    harness_report(print_number);
    exit(3);
}
#endif

int main(int argc, char **argv)
{
    static harness_session session;
    size_t input_bytes[HARNESS_NUM_INPUTS + 1];
    size_t output_bytes[HARNESS_NUM_OUTPUTS + 1];
    void *inputs[HARNESS_NUM_INPUTS + 1];
    void *outputs[HARNESS_NUM_OUTPUTS + 1];
    void *workspaces[HARNESS_NUM_WORKSPACES + 1];
    const void *blobs[HARNESS_NUM_BLOBS + 1];
    void *copies[HARNESS_NUM_COPIES + 1];

    if (argc != 3) {
        stop("wrong number of arguments");
    }
    for (int index = 0; index < HARNESS_NUM_WORKSPACES; ++index) {
        const size_t size_bytes = harness_workspace_size_bytes[index];
        const size_t guard_bytes = HARNESS_GUARD_BYTES(harness_workspace_alignment[index]);
        unsigned char *const block = allocate(size_bytes + 2 * guard_bytes, harness_workspace_alignment[index]);

        memset(block, HARNESS_WORKSPACE_FILL, size_bytes + 2 * guard_bytes);
        workspaces[index] = block + guard_bytes;
    }
#define LOAD_BLOB(index, member, path, alignment, section) blobs[index] = load_blob(path, alignment);
    HARNESS_BLOBS(LOAD_BLOB)
    for (int index = 0; index < HARNESS_NUM_COPIES; ++index) {
        copies[index] = allocate(harness_copy_size_bytes[index], harness_copy_alignment[index]);
    }

    FILE *const input_file = open_file("inputs.bin", "rb");
    FILE *const output_file = open_file("outputs.bin", "wb");
    FILE *const times = open_file("times.bin", "wb");
    const unsigned long num_inferences = strtoul(argv[1], NULL, 10);
    const size_t num_repetitions = strtoul(argv[2], NULL, 10);
    int64_t *const nanoseconds = allocate(num_repetitions * sizeof *nanoseconds, sizeof *nanoseconds);

    check(harness_set_up(&session, workspaces, blobs, copies), workspaces);
    for (unsigned long inference = 0; inference < num_inferences; ++inference) {
        int32_t extents[HARNESS_NUM_EXTENTS + 1];

        if (fread(extents, sizeof extents[0], HARNESS_NUM_EXTENTS, input_file) != HARNESS_NUM_EXTENTS) {
            stop("the input file is too short");
        }
        harness_sizes(extents, input_bytes, output_bytes);
        for (int index = 0; index < HARNESS_NUM_INPUTS; ++index) {
            inputs[index] = allocate(HARNESS_WHOLE_LINES(input_bytes[index]), HARNESS_IO_ALIGNMENT);
            read_input(input_file, inputs[index], input_bytes[index], harness_input_size_bytes[index]);
        }
        for (int index = 0; index < HARNESS_NUM_OUTPUTS; ++index) {
            outputs[index] = allocate(HARNESS_WHOLE_LINES(output_bytes[index]), HARNESS_IO_ALIGNMENT);
        }
        check(harness_repeat(&session, inputs, outputs, extents, num_repetitions, nanoseconds), workspaces);
        if (fwrite(nanoseconds, sizeof *nanoseconds, num_repetitions, times) != num_repetitions) {
            stop("cannot write the times");
        }
        for (int index = 0; index < HARNESS_NUM_OUTPUTS; ++index) {
            write_output(output_file, outputs[index], output_bytes[index], harness_output_size_bytes[index]);
            free(outputs[index]);
        }
        for (int index = 0; index < HARNESS_NUM_INPUTS; ++index) {
            free(inputs[index]);
        }
    }
    if (fclose(output_file) != 0 || fclose(times) != 0) {
        stop("cannot write the outputs");
    }
    return 0;
}
