/* ---- Compilers ----------------------------------------------------------------------------------------- */

/* How arrays are aligned and put into sections; define both for other compilers. */
#ifndef TWO_ALIGNED
#define TWO_ALIGNED(bytes) __attribute__((aligned(bytes)))
#endif
#ifndef TWO_SECTION
#define TWO_SECTION(name) __attribute__((section(name)))
#endif

/* ---- Results ------------------------------------------------------------------------------------------- */

/* What functions return that say how they ended: 0, or one of these. */
enum {
    TWO_OK = 0,
    TWO_ERROR_NULL = -1, /* a pointer that must not be NULL is */
    TWO_ERROR_SIZE = -2, /* a workspace, or memory for parameters, is too small */
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
