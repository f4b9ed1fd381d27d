/* The sensor behind the camera, which is a recording here: recording.bin in the folder that the program runs in.
 *
 * A byte says what happened in the time of a line: 'F', a frame begins; 'L', a line came, whose CAMERA_WIDTH pixels
 * follow; 'E', the frame ended; '-', nothing. recording.py writes it.
 */
#ifndef SENSOR_H
#define SENSOR_H

#include "camera.h"

/* 0, or -1 if there is no recording. */
int sensor_open(volatile camera_line buffers[CAMERA_NUM_BUFFERS]);

/* Lets the time of a line pass: fills a buffer and calls the application, as an interrupt would. 0 at the end. */
int sensor_tick(void);

#endif
