/* A camera that sends an image line by line: what a driver of DCMI, CSI or a line sensor gives to an application.
 *
 * Direct memory access fills two line buffers in turn, from the first at each start of a frame. When line n is there,
 * the camera has begun to write line n + 1, and line n + 2 will go where line n is.
 */
#ifndef CAMERA_H
#define CAMERA_H

#include <stdint.h>

#define CAMERA_WIDTH 160 /* QQVGA, a byte of grey for each pixel */
#define CAMERA_HEIGHT 120
#define CAMERA_NUM_BUFFERS 2

typedef uint8_t camera_line[CAMERA_WIDTH];

/* Switches it on, perhaps in the middle of a frame. Returns 0, or -1 if there is none. */
int camera_start(volatile camera_line buffers[CAMERA_NUM_BUFFERS]);

/* 0 when no interrupt will come any more. */
int camera_is_running(void);

/* The application defines these three. The camera calls them in interrupts. */
void camera_on_frame_start(void);
void camera_on_line(void);
void camera_on_frame_end(void);

/* What a CMSIS header has as __disable_irq, __enable_irq and __WFI. */
void camera_disable_irq(void);
void camera_enable_irq(void);
void camera_wait_for_irq(void); /* also returns for one that is disabled, which is served once it is enabled */

#endif
