/* Reads handwritten digits from a camera's lines as they come; no frame is ever in memory as a whole.
 *
 * Interrupts count frames and lines. The main loop turns each line into a row of the model's input, and pushes it; the
 * model computes what that row makes possible while the camera sends the next one. A frame that did not come as it
 * should is dropped, and the next one begins anew.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "camera.h"
#include "reader.h"

#if CAMERA_HEIGHT != READER_INPUT_FRAME_ROWS || CAMERA_WIDTH < READER_INPUT_FRAME_ROW_SIZE
#error "the model is for another camera"
#endif

enum {
    LEFT_OUT = (CAMERA_WIDTH - READER_INPUT_FRAME_ROW_SIZE) / 2, /* on either side: the model wants a square */
    NUM_CLASSES = READER_OUTPUT_PROBABILITIES_ELEMENTS
};

/* How far the camera is. */
struct progress {
    uint32_t num_frames; /* that have begun */
    uint32_t num_lines;  /* of the last of them; before the first, of what was sent until then */
    int32_t has_ended;   /* the last of them */
};

static READER_SECTION(".dtcm") READER_ALIGNED(READER_DTCM_WORKSPACE_ALIGN) uint8_t workspace[READER_DTCM_WORKSPACE_SIZE];
static reader_context context;
static int8_t probabilities[NUM_CLASSES];

static volatile camera_line lines[CAMERA_NUM_BUFFERS]; /* written by the camera */
static volatile struct progress camera;                /* written by interrupts */

static int32_t is_open;     /* a frame has begun, and has not ended */
static int32_t is_torn;     /* one of its lines came faster than it was taken */
static int32_t is_too_long; /* it has had more lines than the model has rows */
static uint32_t num_lost;   /* lines of torn frames that were not taken */
static uint32_t num_stray;  /* lines and ends that belong to no frame */

void camera_on_frame_start(void)
{
    camera.num_frames = camera.num_frames + 1;
    camera.num_lines = 0;
    camera.has_ended = 0;
}

void camera_on_line(void)
{
    camera.num_lines = camera.num_lines + 1;
}

void camera_on_frame_end(void)
{
    camera.has_ended = 1;
}

static struct progress camera_progress(void)
{
    return (struct progress){camera.num_frames, camera.num_lines, camera.has_ended};
}

static int32_t is_same(const struct progress *one, const struct progress *other)
{
    return one->num_frames == other->num_frames && one->num_lines == other->num_lines && one->has_ended == other->has_ended;
}

/* Sleeps until the camera is further than what was done, or has stopped. */
static struct progress wait_for_camera(const struct progress *done)
{
    camera_disable_irq();
    struct progress now = camera_progress();
    while (is_same(&now, done) && camera_is_running()) {
        camera_wait_for_irq();
        camera_enable_irq(); /* here it is served */
        camera_disable_irq();
        now = camera_progress();
    }
    camera_enable_irq();
    return now;
}

static void check(const char *what, int32_t status)
{
    if (status != READER_OK) {
        printf("%s: error %d\n", what, (int)status);
        exit(1);
    }
}

static void drop(uint32_t num_frames, int32_t status, const char *reason)
{
    printf("frame %u: dropped, ", (unsigned)num_frames);
    if (status != READER_OK) {
        printf("error %d: ", (int)status);
    }
    printf("%s\n", reason);
}

/* What a pixel is in the model's input, which stands for 0 (black) to 1 (white). */
static int8_t quantised(uint8_t pixel)
{
    const float steps = (float)pixel * (1.0f / 255.0f / READER_INPUT_FRAME_SCALE);
    const int32_t value = (int32_t)(steps + 0.5f) + READER_INPUT_FRAME_ZERO_POINT;

    return (int8_t)(value < INT8_MIN ? INT8_MIN : value > INT8_MAX ? INT8_MAX : value);
}

/* Whatever the frame before came to, is forgotten. */
static void begin_frame(uint32_t num_frames)
{
    const reader_outputs outputs = {.probabilities = probabilities};

    if (is_open) {
        drop(num_frames - 1, READER_OK, "the next one began before it ended");
    }
    check("begin", reader_begin(&context, &outputs));
    is_open = 1;
    is_torn = 0;
    is_too_long = 0;
}

/* Turns a line into a row; 0 if the camera may have begun to write over it meanwhile. */
static int32_t read_line(const struct progress *done, int8_t *row)
{
    const volatile uint8_t *const line = lines[done->num_lines % CAMERA_NUM_BUFFERS];

    for (int x = 0; x < READER_INPUT_FRAME_ROW_SIZE; ++x) {
        row[x] = quantised(line[LEFT_OUT + x]);
    }
    camera_disable_irq();
    const struct progress now = camera_progress();
    camera_enable_irq();
    return now.num_frames == done->num_frames && now.num_lines - done->num_lines < CAMERA_NUM_BUFFERS;
}

static void take_line(const struct progress *done)
{
    int8_t row[READER_INPUT_FRAME_ROW_SIZE];

    if (is_torn || !read_line(done, row)) {
        is_torn = 1; /* nothing more is pushed, so the frame will be found incomplete */
        ++num_lost;
        return;
    }
    const int32_t status = reader_push_rows(&context, row, 1); /* the row is done with when this returns */
    if (status == READER_ERROR_NOT_BEGUN) {
        ++num_stray; /* the rest of a frame that was under way when the camera was switched on */
    } else if (status == READER_ERROR_ROWS) {
        is_too_long = 1;
    } else {
        check("push_rows", status);
    }
}

static void end_frame(uint32_t num_frames)
{
    is_open = 0;
    if (is_too_long) {
        drop(num_frames, READER_ERROR_ROWS, "it had too many lines");
        return;
    }
    const int32_t status = reader_finish(&context);
    if (status == READER_ERROR_INCOMPLETE) {
        drop(num_frames, status, "lines are missing");
        return;
    }
    if (status == READER_ERROR_NOT_BEGUN) {
        ++num_stray;
        return;
    }
    check("finish", status);
    int best = 0;
    for (int digit = 1; digit < NUM_CLASSES; ++digit) {
        best = probabilities[digit] > probabilities[best] ? digit : best;
    }
    printf("frame %u: %d, scores", (unsigned)num_frames, best);
    for (int digit = 0; digit < NUM_CLASSES; ++digit) {
        printf(" %d", probabilities[digit] - READER_OUTPUT_PROBABILITIES_ZERO_POINT);
    }
    printf("\n");
}

int main(void)
{
    const reader_workspaces workspaces = {.dtcm = {workspace, sizeof workspace}};
    struct progress done = {0, 0, 0};

    check("set_workspaces", reader_set_workspaces(&context, &workspaces));
    check("camera", camera_start(lines));
    for (;;) {
        const struct progress now = wait_for_camera(&done);
        if (is_same(&now, &done)) {
            break; /* the camera has stopped */
        }
        if (now.num_frames != done.num_frames) {
            begin_frame(now.num_frames);
            done = (struct progress){now.num_frames, 0, 0};
        } else if (now.num_lines != done.num_lines) {
            take_line(&done);
            ++done.num_lines;
        } else {
            end_frame(now.num_frames);
            done.has_ended = 1;
        }
    }
    if (is_open) {
        drop(done.num_frames, READER_OK, "the camera stopped before it ended");
    }
    printf("lines lost: %u, outside of frames: %u\n", (unsigned)num_lost, (unsigned)num_stray);
    return 0;
}
