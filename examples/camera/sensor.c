/* A recording in place of a sensor: the same on the host and, through semihosting, on the emulated board. */
#include "sensor.h"

#include <fcntl.h>
#include <unistd.h>

static int file = -1;
static volatile camera_line *buffers;
static uint32_t num_lines;

int sensor_open(volatile camera_line lines[CAMERA_NUM_BUFFERS])
{
    buffers = lines;
    file = open("recording.bin", O_RDONLY);
    return file < 0 ? -1 : 0;
}

static int read_line(void)
{
    camera_line pixels;
    volatile uint8_t *const buffer = buffers[num_lines % CAMERA_NUM_BUFFERS];

    if (read(file, pixels, sizeof pixels) != (int)sizeof pixels) {
        return 0;
    }
    for (int x = 0; x < CAMERA_WIDTH; ++x) {
        buffer[x] = pixels[x];
    }
    ++num_lines;
    camera_on_line();
    return 1;
}

int sensor_tick(void)
{
    char what;

    if (read(file, &what, 1) != 1) {
        return 0;
    }
    switch (what) {
    case 'F':
        num_lines = 0;
        camera_on_frame_start();
        return 1;
    case 'L':
        return read_line();
    case 'E':
        camera_on_frame_end();
        return 1;
    default:
        return what == '-';
    }
}
