/* ---- Where memories begin: an image for another machine may define that -------------------------------- */

#ifndef TWO_ITCM_BASE
#define TWO_ITCM_BASE 0x00000000u
#endif
#ifndef TWO_ITCM_ALIAS_1
#define TWO_ITCM_ALIAS_1 0x10000000u
#endif
#ifndef TWO_SRAM_BASE
#define TWO_SRAM_BASE 0x01000000u
#endif
#ifndef TWO_SRAM_ALIAS_1
#define TWO_SRAM_ALIAS_1 0x11000000u
#endif
#ifndef TWO_DTCM_BASE
#define TWO_DTCM_BASE 0x20000000u
#endif
#ifndef TWO_DTCM_ALIAS_1
#define TWO_DTCM_ALIAS_1 0x30000000u
#endif
#ifndef TWO_ISRAM_BASE
#define TWO_ISRAM_BASE 0x21000000u
#endif
#ifndef TWO_ISRAM_ALIAS_1
#define TWO_ISRAM_ALIAS_1 0x31000000u
#endif
#ifndef TWO_FLASH_BASE
#define TWO_FLASH_BASE 0x28000000u
#endif
#ifndef TWO_FLASH_ALIAS_1
#define TWO_FLASH_ALIAS_1 0x38000000u
#endif
