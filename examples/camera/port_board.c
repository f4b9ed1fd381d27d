/* The camera on a bare Cortex-M55 (mps3-an547): a timer's interrupt for each line, and what a program needs to begin. */
#include <stdint.h>
#include <stdlib.h>

#include "camera.h"
#include "sensor.h"

enum { CLOCK_HZ = 32000000, LINES_PER_SECOND = 4000 }; /* 32 frames in a second, with the time between them */

int main(void);
void initialise_monitor_handles(void); /* of the C library: semihosting */
void reset(void) __attribute__((noreturn));

static volatile int is_running;

static volatile uint32_t *word_at(uint32_t address)
{
    return (volatile uint32_t *)(uintptr_t)address;
}

static void set_timer(uint32_t control)
{
    *word_at(0xE000E014u) = CLOCK_HZ / LINES_PER_SECOND - 1; /* SYST_RVR */
    *word_at(0xE000E018u) = 0;                               /* SYST_CVR */
    *word_at(0xE000E010u) = control;                         /* SYST_CSR */
}

int camera_start(volatile camera_line buffers[CAMERA_NUM_BUFFERS])
{
    if (sensor_open(buffers) != 0) {
        return -1;
    }
    is_running = 1;
    set_timer(7); /* the processor's clock, with interrupts, on */
    return 0;
}

int camera_is_running(void)
{
    return is_running;
}

void camera_disable_irq(void)
{
    __asm__ volatile("cpsid i" ::: "memory");
}

void camera_enable_irq(void)
{
    __asm__ volatile("cpsie i\n isb" ::: "memory");
}

void camera_wait_for_irq(void)
{
    __asm__ volatile("dsb\n wfi" ::: "memory");
}

static void on_timer(void)
{
    if (!sensor_tick()) {
        set_timer(0);
        is_running = 0;
    }
}

static void on_fault(void)
{
    _Exit(3);
}

void reset(void)
{
    extern uint32_t bss_start[], bss_end[];

    *word_at(0xE000ED88u) |= 0xFu << 20; /* CPACR: floating point and MVE, first of all: loops may use it */
    __asm__ volatile("dsb\n isb" ::: "memory");
    for (uint32_t *word = bss_start; word < bss_end; ++word) {
        *word = 0;
    }
    initialise_monitor_handles();
    exit(main());
}

extern uint32_t stack_top[];

static const struct {
    uint32_t *stack;
    void (*handlers[15])(void); /* reset, faults, calls, and at the end the timer */
} vectors __attribute__((used, section(".vectors"))) = {
    stack_top,
    {reset, on_fault, on_fault, on_fault, on_fault, on_fault, on_fault, on_fault, on_fault, on_fault, on_fault, on_fault, on_fault,
     on_fault, on_timer},
};
