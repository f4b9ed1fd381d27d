/* The harness as a program, on whatever machine its port (port.h) knows: any number of inferences.
 *
 * Reads inputs.bin: how many inferences there are, how often each runs, whether each goes on from where the last one
 * ended, and of each its entry, or a number below 0 for all of them, the extents, and the bytes of the inputs that they
 * make. Writes outputs.bin likewise, measured.bin with a number for each run, and report.txt with a fact on each line:
 * "status -3".
 */
#include <string.h>

#include "port.h"

static HARNESS_MODEL(context) harness_model_context HARNESS_USED HARNESS_WRITABLE;
static int report_file = -1;

void harness_report(const char *name, int64_t value)
{
    char digits[24];
    char *const end = digits + sizeof digits;
    char *digit = end;
    uint64_t left = value < 0 ? 0u - (uint64_t)value : (uint64_t)value;

    if (report_file < 0) {
        return;
    }
    *--digit = '\n';
    do {
        *--digit = (char)('0' + left % 10);
        left /= 10;
    } while (left != 0);
    if (value < 0) {
        *--digit = '-';
    }
    *--digit = ' ';
    port_write(report_file, name, strlen(name));
    port_write(report_file, digit, (size_t)(end - digit));
}

static void check(int32_t status)
{
    if (status < 0) {
        harness_report("status", status);
#if HARNESS_NUM_DEVICES > 0
        harness_report_devices();
#endif
        port_exit(HARNESS_MODEL_FAILED);
    }
}

/* One inference, which runs as often as is asked. */
static void infer(harness_session *session, int input_file, int output_file, int measured_file, uint32_t num_repetitions)
{
    int32_t entry;
    int32_t extents[HARNESS_NUM_EXTENTS + 1];
    size_t input_bytes[HARNESS_NUM_INPUTS + 1];
    size_t output_bytes[HARNESS_NUM_OUTPUTS + 1];
    void *inputs[HARNESS_NUM_INPUTS + 1];
    void *outputs[HARNESS_NUM_OUTPUTS + 1];

    port_read(input_file, &entry, sizeof entry);
    harness_choose(session, entry);
    port_read(input_file, extents, HARNESS_NUM_EXTENTS * sizeof extents[0]);
    harness_sizes(extents, input_bytes, output_bytes);
    for (int index = 0; index < HARNESS_NUM_INPUTS; ++index) {
        inputs[index] = port_buffer(index, input_bytes[index]);
        port_read(input_file, inputs[index], input_bytes[index]);
    }
    for (int index = 0; index < HARNESS_NUM_OUTPUTS; ++index) {
        outputs[index] = port_buffer(HARNESS_NUM_INPUTS + index, output_bytes[index]);
    }
    for (uint32_t repetition = 0; repetition < num_repetitions; ++repetition) {
        int64_t measured;

        check(harness_repeat(session, inputs, outputs, extents, 1, &measured));
        port_write(measured_file, &measured, sizeof measured);
    }
    for (int index = 0; index < HARNESS_NUM_OUTPUTS; ++index) {
        port_write(output_file, outputs[index], output_bytes[index]);
    }
}

int HARNESS_MAIN(void)
{
    static harness_session session;
    uint32_t counts[3]; /* of inferences, how often each runs, and whether state is kept from one to the next */

    report_file = port_open("report.txt", PORT_WRITE);
    const int input_file = port_open("inputs.bin", PORT_READ);
    const int output_file = port_open("outputs.bin", PORT_WRITE);
    const int measured_file = port_open("measured.bin", PORT_WRITE);
    const port_memory memory = port_obtain_memory();

    port_read(input_file, counts, sizeof counts);
    for (int index = 0; index < HARNESS_NUM_WORKSPACES; ++index) {
        const size_t guard_bytes = HARNESS_GUARD_BYTES(harness_workspace_alignment[index]);
        unsigned char *const first = (unsigned char *)memory.workspaces[index] - guard_bytes;

        memset(first, HARNESS_WORKSPACE_FILL, harness_workspace_size_bytes[index] + 2 * guard_bytes);
    }
    check(harness_set_up(&session, &harness_model_context, memory.workspaces, memory.blobs, memory.copies));
    harness_keep_state(&session, (int32_t)counts[2]);
    for (uint32_t inference = 0; inference < counts[0]; ++inference) {
        infer(&session, input_file, output_file, measured_file, counts[1]);
    }
#if HARNESS_NUM_DEVICES > 0
    harness_report_devices();
#endif
    return HARNESS_FINE;
}
