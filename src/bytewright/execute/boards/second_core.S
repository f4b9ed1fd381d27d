/* Core 1 of an SSE-200: vector table, reset, the loop in which it sleeps and serves, and the call of a kernel.
 *
 * The loop runs privileged on a stack of the harness. Kernels run unprivileged on the device's own stack, behind the
 * memory protection unit: second_core_agent.c has written what they may touch, and there is no map behind it for
 * them. A supervisor call leads back, and so does every fault.
 */
#include "second_core.h"

    .syntax unified
    .thumb

    .section .text.second_core_vectors, "ax"
    .balign 512
    .global second_core_vectors
second_core_vectors:
    .word second_core_main_stack_top
    .word second_core_reset
    .rept 9
    .word second_core_fault_entry
    .endr
    .word second_core_return_entry  /* SVCall */
    .rept 100
    .word second_core_fault_entry   /* the ring is an interrupt that is never taken: it ends the sleep */
    .endr

    .section .text.second_core, "ax"
    .balign 4

    .global second_core_reset
    .type second_core_reset, %function
    .thumb_func
second_core_reset:
    cpsid   i
    ldr     r0, =0xE000ED88         /* CPACR: CP10 and CP11, which only a core with floating-point unit has */
    ldr     r1, [r0]
    orr     r1, r1, #(0xF << 20)
    str     r1, [r0]
    ldr     r0, =0xE000EF34         /* FPCCR: an exception saves no floating-point state */
    ldr     r1, [r0]
    bic     r1, r1, #(3 << 30)
    str     r1, [r0]
    dsb
    isb
    bl      second_core_begin
    ldr     r4, =second_core_mailbox
    b       3f                      /* says that it is ready */
1:  wfi
    ldr     r0, =SECOND_CORE_RING_CLEAR
    movs    r1, #0xF
    str     r1, [r0]
    dsb
    ldr     r0, =NVIC_ICPR
    movs    r1, #(1 << SECOND_CORE_RING_INTERRUPT)
    str     r1, [r0]
    dsb
    ldr     r5, [r4, #SECOND_CORE_REQUEST]
    ldr     r1, [r4, #SECOND_CORE_SERVED]
    cmp     r5, r1
    beq     1b
    .global second_core_measure_begin
second_core_measure_begin:
    b       2f
2:  mov     r0, r4
    bl      second_core_serve
    str     r0, [r4, #SECOND_CORE_STATUS]
    dmb
    str     r5, [r4, #SECOND_CORE_SERVED]
3:  dsb
    ldr     r0, =SECOND_CORE_REPLY
    movs    r1, #1
    str     r1, [r0]
    isb
    .global second_core_measure_end
second_core_measure_end:
    b       1b
    .size second_core_reset, . - second_core_reset

    /* int32_t second_core_call(code, code_bytes, spans, num_spans): the bundle's dispatcher, unprivileged on the
     * device's stack. Where the way back finds the caller, a fault finds it too.
     */
    .global second_core_call
    .type second_core_call, %function
    .thumb_func
second_core_call:
    push    {r4, r5, r6, r7, r8, r9, r10, r11, r12, lr}
    ldr     r4, =second_core_stack
    ldm     r4, {r5, r6}            /* base and top, as core 1 sees them */
    msr     psplim, r5
    msr     psp, r6
    cpsie   i                       /* masked, a supervisor call is a fault; nobody rings while a job runs */
    ldr     r4, =HARNESS_DEVICE_EXECUTE
    mrs     r5, control
    orr     r5, r5, #3              /* the process stack, unprivileged */
    msr     control, r5
    isb
    blx     r4
    svc     #0
second_core_returned:
    .size second_core_call, . - second_core_call

    /* The supervisor call: r0 of the frame is the dispatcher's status. From anywhere else it is a fault. */
    .type second_core_return_entry, %function
    .thumb_func
second_core_return_entry:
    mrs     r1, psp
    ldr     r0, [r1, #24]
    ldr     r2, =second_core_returned
    cmp     r0, r2
    bne     second_core_fault_entry
    ldr     r0, [r1]
    b       second_core_leave
    .size second_core_return_entry, . - second_core_return_entry

    .global second_core_fault_entry
    .type second_core_fault_entry, %function
    .thumb_func
second_core_fault_entry:
    ands    r1, lr, #4              /* outside of kernels there is nothing that could go on */
0:  beq     0b
    mrs     r0, psp
    bl      second_core_note_fault
    movs    r0, #0
    mvns    r0, r0
    /* r0 = the status: back into the caller of second_core_call, by a frame of its own. */
second_core_leave:
    mrs     r1, control
    bic     r1, r1, #1
    msr     control, r1
    isb
    sub     sp, sp, #32
    str     r0, [sp]
    ldr     r1, =second_core_left
    str     r1, [sp, #24]
    mov     r1, #0x01000000
    str     r1, [sp, #28]
    mvn     lr, #6                  /* 0xFFFFFFF9: Secure thread mode on the main stack */
    bx      lr

    .type second_core_left, %function
    .thumb_func
second_core_left:
    cpsid   i
    pop     {r4, r5, r6, r7, r8, r9, r10, r11, r12, pc}
    .size second_core_left, . - second_core_left
