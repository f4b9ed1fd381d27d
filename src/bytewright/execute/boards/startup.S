/* Vector table, reset and the measured call, for Armv6-M upwards with Thumb-2 (v7-M, v7E-M, v8-M Mainline).
 *
 * The harness runs on the main stack. The model runs on the process stack, alone: its high-water mark is
 * measured, a fault in it leaves the fault handler a stack of its own, and on v8-M PSPLIM stops an overflow.
 *
 * Where the board's memory protection is used, the model runs unprivileged under the regions that port_board.c has
 * written, with no map behind them: it may write what the caller gave it to write, and not even the registers of
 * the processor besides. The way back is a supervisor call.
 */
    .syntax unified
    .thumb

    .equ MPU_CTRL, 0xE000ED94
#if HARNESS_SECOND_CORE
#include "second_core.h"
    .equ HARNESS_MPU_ON, 5          /* what is privileged has the default map behind: the supervisor calls of hooks */
#else
    .equ HARNESS_MPU_ON, 1          /* with no map behind */
#endif

    .section .vectors, "a"
    .balign 512
    .global harness_vectors
harness_vectors:
    .word __harness_main_stack_top
    .word harness_reset
    .rept 9                         /* NMI, HardFault, MemManage, BusFault, UsageFault, SecureFault, reserved */
    .word harness_fault_entry
    .endr
#if HARNESS_NUM_REGIONS > 0
    .word harness_supervisor_entry  /* SVCall */
#else
    .word harness_fault_entry
#endif
    .rept 100                       /* debug monitor .. SysTick, which nothing here uses; no interrupt is ever enabled */
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
    /* FPCCR: an exception saves no floating-point state. None returns to code that has some, and the frame of the
     * supervisor call must fit on the smallest stack.
     */
    ldr     r0, =0xE000EF34
    ldr     r1, [r0]
    bic     r1, r1, #(3 << 30)
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
1:  ldr     r0, =__harness_loads    /* what lives elsewhere than it was loaded: from, first and end, all of words */
    ldr     r1, =__harness_loads_end
2:  cmp     r0, r1
    bhs     5f
    ldmia   r0!, {r2, r3, r4}
3:  cmp     r3, r4
    bhs     2b
    ldr     r5, [r2], #4
    str     r5, [r3], #4
    b       3b
5:  bl      harness_begin
    bl      main
    b       port_exit
    .size harness_reset, . - harness_reset

    .global harness_fault_entry
    .type harness_fault_entry, %function
    .thumb_func
harness_fault_entry:
#if HARNESS_NUM_REGIONS > 0
    ldr     r0, =MPU_CTRL           /* the main stack is not among what the run may write */
    movs    r1, #0
    str     r1, [r0]
    dsb
    isb
#endif
    ands    r1, lr, #4              /* which stack holds the exception frame */
    ite     eq
    mrseq   r0, msp
    mrsne   r0, psp
    b       harness_fault
    .size harness_fault_entry, . - harness_fault_entry

#if HARNESS_NUM_REGIONS > 0
    /* void harness_unprotect(void): ends the protection of a run, from inside it. */
    .global harness_unprotect
    .type harness_unprotect, %function
    .thumb_func
harness_unprotect:
    svc     #0
harness_unprotected:
    bx      lr
    .size harness_unprotect, . - harness_unprotect

    /* The supervisor calls; from anywhere else they are faults. Nothing may be pushed before the protection is off,
     * and what the registers held comes back with the exception frame.
     */
    .type harness_supervisor_entry, %function
    .thumb_func
harness_supervisor_entry:
    ands    r1, lr, #4
    ite     eq
    mrseq   r0, msp
    mrsne   r0, psp
    ldr     r0, [r0, #24]           /* where it returns to */
#if HARNESS_SECOND_CORE
    ldr     r1, =second_core_rung
    cmp     r0, r1
    beq     second_core_ring_entry
    ldr     r1, =second_core_awaited
    cmp     r0, r1
    beq     second_core_await_entry
#endif
    ldr     r1, =harness_unprotected
    cmp     r0, r1
    bne     harness_fault_entry
    ldr     r0, =MPU_CTRL
    movs    r1, #0
    str     r1, [r0]
    dsb
    mrs     r0, control
    bic     r0, r0, #1
    msr     control, r0
    isb
    bx      lr
    .size harness_supervisor_entry, . - harness_supervisor_entry
#endif

    /* int32_t harness_call(arguments, num_on_stack): calls the model on the process stack, with four arguments in
     * registers and the others where a callee finds them, and notes in harness_stack the lowest word of it that is not
     * painted any more. An inference is counted from its first
     * instruction, the one after harness_measure_begin, to its return to harness_measure_end.
     */
    .global harness_call
    .type harness_call, %function
    .thumb_func
harness_call:
    push    {r4, r5, r6, r7, r8, lr}
    ldr     r8, =harness_stack
    ldm     r8, {r5, r6}            /* base, top */
#if __ARM_ARCH >= 8
    msr     psplim, r5
#endif
    mov     r7, r6
    adds    r2, r1, #1
    bic     r2, r2, #1              /* a stack is aligned to 8 */
    sub     r7, r7, r2, lsl #2
    msr     psp, r7
    add     r3, r0, #16
2:  cbz     r1, 3f
    ldr     r2, [r3], #4
    str     r2, [r7], #4
    subs    r1, r1, #1
    b       2b
3:  ldm     r0, {r0, r1, r2, r3}
    mrs     r4, control
    orr     r4, r4, #2              /* the process stack */
    msr     control, r4
    isb
#if HARNESS_NUM_REGIONS > 0
    ldr     r12, =MPU_CTRL
    movs    r4, #HARNESS_MPU_ON
    str     r4, [r12]
    dsb
    isb
    mrs     r4, control
    orr     r4, r4, #1              /* unprivileged */
    msr     control, r4
    isb
#endif
    ldr     r4, =HARNESS_RUN
    .global harness_measure_begin
harness_measure_begin:
    blx     r4
    .global harness_measure_end
harness_measure_end:
    ldr     r7, [r8, #8]            /* paint; the search is before the supervisor call, whose frame lies on the stack */
0:  cmp     r5, r6
    bhs     1f
    ldr     r4, [r5]
    cmp     r4, r7
    bne     1f
    adds    r5, r5, #4
    b       0b
1:
#if HARNESS_NUM_REGIONS > 0
    bl      harness_unprotect
#endif
    str     r5, [r8, #12]
    mrs     r4, control
    bic     r4, r4, #2
    msr     control, r4
    isb
    pop     {r4, r5, r6, r7, r8, pc}
    .size harness_call, . - harness_call

#if HARNESS_SECOND_CORE
    /* void second_core_ring(void), void second_core_await(void): what the hooks may not do themselves. */
    .global second_core_ring
    .type second_core_ring, %function
    .thumb_func
second_core_ring:
    svc     #0
second_core_rung:
    bx      lr
    .size second_core_ring, . - second_core_ring

    .global second_core_await
    .type second_core_await, %function
    .thumb_func
second_core_await:
    svc     #0
second_core_awaited:
    bx      lr
    .size second_core_await, . - second_core_await

    .type second_core_ring_entry, %function
    .thumb_func
second_core_ring_entry:
    dsb
    ldr     r0, =SECOND_CORE_RING
    movs    r1, #1
    str     r1, [r0]
    bx      lr
    .size second_core_ring_entry, . - second_core_ring_entry

    /* The reply is masked, so that it ends the sleep and is never taken; if it has come already there is no sleep. One
     * sleep for each wait, whoever is first: the count of instructions is the same in every run.
     */
    .type second_core_await_entry, %function
    .thumb_func
second_core_await_entry:
    cpsid   i
    ldr     r2, =NVIC_ISER
    movs    r1, #(1 << SECOND_CORE_REPLY_INTERRUPT)
    str     r1, [r2]
    ldr     r3, =second_core_mailbox
0:  wfi
    ldr     r0, [r3, #SECOND_CORE_REQUEST]
    ldr     r12, [r3, #SECOND_CORE_SERVED]
    cmp     r0, r12
    bne     0b
    ldr     r0, =SECOND_CORE_REPLY_CLEAR
    movs    r3, #0xF
    str     r3, [r0]
    dsb
    str     r1, [r2, #(NVIC_ICER - NVIC_ISER)]
    str     r1, [r2, #(NVIC_ICPR - NVIC_ISER)]
    dsb
    cpsie   i
    bx      lr
    .size second_core_await_entry, . - second_core_await_entry
#endif
