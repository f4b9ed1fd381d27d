/* A model behind a serial line, for `bytewright run|profile|validate --on serial:PORT`. */
#ifndef HARNESS_SERIAL_H
#define HARNESS_SERIAL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a board brings. */
typedef struct {
    /* Waits for the next byte, 0 to 255; a number below 0 ends harness_serial. */
    int (*get_byte)(void);
    void (*put_byte)(uint8_t byte);
    /* Cycles since the last call; a number below 0 if they are not known. NULL: there is no counter. */
    int64_t (*cycles)(void);
} harness_serial_line;

/* Answers one host after the other. Nothing else uses the line meanwhile. */
void harness_serial(const harness_serial_line *line);

#if defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M'
/* The core's own counter, for `cycles`: CYCCNT, which must not count 2^32 cycles between two calls; or where there is none
 * SysTick, which this takes for itself: after 2^24 cycles it is below 0.
 */
int64_t harness_serial_cycles(void);
#endif

#ifdef __cplusplus
}
#endif

#endif
