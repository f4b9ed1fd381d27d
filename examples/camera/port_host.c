/* The camera on a machine without interrupts for it: one comes whenever the application waits. */
#include "camera.h"
#include "sensor.h"

static int is_running;

int camera_start(volatile camera_line buffers[CAMERA_NUM_BUFFERS])
{
    is_running = sensor_open(buffers) == 0;
    return is_running ? 0 : -1;
}

int camera_is_running(void)
{
    return is_running;
}

void camera_disable_irq(void)
{
}

void camera_enable_irq(void)
{
}

void camera_wait_for_irq(void)
{
    is_running = sensor_tick();
}
