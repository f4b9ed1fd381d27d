#ifndef TWO_H
#define TWO_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes, exact: what each pool holds. One byte less is refused. */
#define TWO_DTCM_WORKSPACE_SIZE 8
#define TWO_DTCM_WORKSPACE_ALIGN 16
#define TWO_ISRAM_WORKSPACE_SIZE 0
#define TWO_ISRAM_WORKSPACE_ALIGN 16
#define TWO_FLASH_PARAMETERS_SIZE 55
#define TWO_FLASH_PARAMETERS_ALIGN 16
/* Bytes of explicit arrays on the worst call path, and that plus an allowance for each call. */
#define TWO_STACK_PLANNED_BYTES 4
#define TWO_STACK_SIZE 516
/* The bytes of each parameter pool, for an array of the application's own:
 * const uint8_t mine[] = {
 * #include THE_MACRO
 * }; */
#define TWO_FLASH_PARAMETERS_INITIALIZER "two_flash_parameters.inc"

/* How arrays are aligned and put into sections; define both for other compilers. */
#ifndef TWO_ALIGNED
#define TWO_ALIGNED(bytes) __attribute__((aligned(bytes)))
#endif
#ifndef TWO_SECTION
#define TWO_SECTION(name) __attribute__((section(name)))
#endif

/* Results of all functions: 0, or one of these. */
enum {
    TWO_OK = 0,
    TWO_ERROR_NULL = -1, /* a pointer that must not be NULL is */
    TWO_ERROR_SIZE = -2, /* an arena is too small */
    TWO_ERROR_ALIGN = -3, /* an address is not aligned as the macros ask */
    TWO_ERROR_OVERLAP = -4, /* two memories share bytes */
    TWO_ERROR_RANGE = -5, /* memory is not where the target states it, or runs over the last address */
    TWO_ERROR_HASH = -6, /* parameters are not the ones that this code was generated with */
    TWO_ERROR_NOT_SET = -7, /* workspaces or parameters were not set before run */
    TWO_ERROR_DEVICE = -8, /* a device refused */
    TWO_ERROR_NO_MEMORY = -9, /* memory that was requested at run time was refused */
    TWO_ERROR_EXTENT = -10, /* an extent that the run is given, such as the batch, is out of its range */
    TWO_ERROR_ORDER = -11, /* memory was released that is not what was requested last */
    TWO_ERROR_EXTERNAL = -12 /* a function of the application that the model calls returned an error */
};
