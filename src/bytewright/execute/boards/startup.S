/* Vector table, reset and the measured call, for Armv6-M upwards with Thumb-2 (v7-M, v7E-M, v8-M Mainline).
 *
 * The harness runs on the main stack. The model runs on the process stack, alone: its high-water mark is
 * measured, a fault in it leaves the fault handler a stack of its own, and on v8-M PSPLIM stops an overflow.
 */
    .syntax unified
    .thumb

    .section .vectors, "a"
    .balign 512
    .global harness_vectors
harness_vectors:
    .word __harness_main_stack_top
    .word harness_reset
    .rept 9                         /* NMI, HardFault, MemManage, BusFault, UsageFault, SecureFault, reserved */
    .word harness_fault_entry
    .endr
    .rept 5                         /* SVCall .. SysTick: nothing here uses them */
    .word harness_fault_entry
    .endr
    .rept 96                        /* no interrupt is ever enabled */
    .word harness_fault_entry
    .endr

    .section .text.harness_startup, "ax"
    .balign 4

    .global harness_reset
    .type harness_reset, %function
    .thumb_func
harness_reset:
    /* CP10 and CP11: floating point and MVE. FPSCR keeps its reset value; on v8.1-M its LTPSIZE must stay 4. */
    ldr     r0, =0xE000ED88
    ldr     r1, [r0]
    orr     r1, r1, #(0xF << 20)
    str     r1, [r0]
    dsb
    isb
    ldr     r0, =__harness_bss_start
    ldr     r1, =__harness_bss_end
    movs    r2, #0
0:  cmp     r0, r1
    bhs     1f
    str     r2, [r0], #4
    b       0b
1:  bl      main
    b       harness_exit
    .size harness_reset, . - harness_reset

    .global harness_fault_entry
    .type harness_fault_entry, %function
    .thumb_func
harness_fault_entry:
    tst     lr, #4                  /* which stack holds the exception frame */
    ite     eq
    mrseq   r0, msp
    mrsne   r0, psp
    b       harness_fault
    .size harness_fault_entry, . - harness_fault_entry

    /* int32_t harness_call(context, inputs, outputs, const struct harness_stack *):
     * calls the model on the process stack. An inference is counted from its first instruction, the one after
     * harness_measure_begin, to its return to harness_measure_end.
     */
    .global harness_call
    .type harness_call, %function
    .thumb_func
harness_call:
    push    {r4, r5, r6, lr}
    ldr     r5, [r3]
    ldr     r6, [r3, #4]
#if __ARM_ARCH >= 8
    msr     psplim, r5
#endif
    msr     psp, r6
    mrs     r4, control
    orr     r4, r4, #2
    msr     control, r4
    isb
    ldr     r4, =HARNESS_RUN
    .global harness_measure_begin
harness_measure_begin:
    blx     r4
    .global harness_measure_end
harness_measure_end:
    mrs     r4, control             /* read again: FPCA may have been set */
    bic     r4, r4, #2
    msr     control, r4
    isb
    pop     {r4, r5, r6, pc}
    .size harness_call, . - harness_call
