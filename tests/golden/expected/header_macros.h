#ifndef TWO_H
#define TWO_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- The Bytewright that generated this ---------------------------------------------------------------- */

#define TWO_BYTEWRIGHT_VERSION "0.1.0"
#define TWO_BYTEWRIGHT_VERSION_MAJOR 0
#define TWO_BYTEWRIGHT_VERSION_MINOR 1
#define TWO_BYTEWRIGHT_VERSION_PATCH 0

/* ---- Memory -------------------------------------------------------------------------------------------- */

/* Bytes, exact: what each pool holds. One byte less is refused. */
#define TWO_DTCM_WORKSPACE_SIZE 8
#define TWO_DTCM_WORKSPACE_ALIGN 16
#define TWO_FLASH_PARAMETERS_SIZE 122
#define TWO_FLASH_PARAMETERS_ALIGN 16
/* Bytes of explicit arrays on the worst call path, and that plus an allowance for each call. */
#define TWO_STACK_PLANNED_BYTES 8
#define TWO_STACK_SIZE 520
/* The bytes of each parameter pool, for an array of the application's own:
 * const uint8_t mine[] = {
 * #include THE_MACRO
 * }; */
#define TWO_FLASH_PARAMETERS_INITIALIZER "two_flash_parameters.inc"

/* ---- Inputs and outputs -------------------------------------------------------------------------------- */

/* Of each: bytes, elements, and extents as the initializer of an array. A real number x is stored as
 * round(x / SCALE) + ZERO_POINT, where the two are given. */
#define TWO_INPUT_X_SIZE 4
#define TWO_INPUT_X_ELEMENTS 4
#define TWO_INPUT_X_RANK 4
#define TWO_INPUT_X_SHAPE {1, 2, 2, 1}
#define TWO_INPUT_X_SCALE 0.5f
#define TWO_INPUT_X_ZERO_POINT (3)
#define TWO_OUTPUT_Y_SIZE 3
#define TWO_OUTPUT_Y_ELEMENTS 3
#define TWO_OUTPUT_Y_RANK 2
#define TWO_OUTPUT_Y_SHAPE {1, 3}
#define TWO_OUTPUT_Y_SCALE 4.0f
#define TWO_OUTPUT_Y_ZERO_POINT (0)
