/* A library to preload: the processor's AVX-512, AMX and AVX-VNNI are hidden from a program that asks for them.
 *
 * Linux can let the CPUID instruction fault (arch_prctl, ARCH_CPUID_SET) on processors that are able to. Each fault is
 * answered with what the instruction says, without these features. A peer that chooses its kernels by CPUID then runs
 * those of AVX2, on the same machine and in the same run. The program exits with 77 where that is not to be had.
 *
 * Source of the bits: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2A, CPUID, leaf 7.
 */
#define _GNU_SOURCE
#include <cpuid.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum { ARCH_CPUID_SET = 0x1012, NOT_ABLE = 77 };

/* Leaf 7, subleaf 0: F, DQ, IFMA, PF, ER, CD, BW, VL; VBMI, VBMI2, VNNI, BITALG, VPOPCNTDQ; 4VNNIW, 4FMAPS,
 * VP2INTERSECT, AMX-BF16, FP16, AMX-TILE, AMX-INT8. Subleaf 1: AVX-VNNI, AVX512-BF16, AMX-FP16, AVX-IFMA;
 * AVX-VNNI-INT8, AVX-NE-CONVERT, AMX-COMPLEX, AVX-VNNI-INT16, AVX10. */
static const uint32_t HIDDEN_0[4] = {0, 0xDC230000u, 0x00005842u, 0x03C0010Cu};
static const uint32_t HIDDEN_1[4] = {0x00A00030u, 0, 0, 0x00080530u};

static void let_cpuid(int works) { (void)syscall(SYS_arch_prctl, ARCH_CPUID_SET, works); }

static void answer(int number, siginfo_t *info, void *state) {
    greg_t *registers = ((ucontext_t *)state)->uc_mcontext.gregs;
    const uint8_t *code = (const uint8_t *)registers[REG_RIP];
    uint32_t found[4], leaf, subleaf;
    (void)info;
    if (code[0] != 0x0F || code[1] != 0xA2) { /* no CPUID: a fault of the program's own */
        signal(number, SIG_DFL);
        return;
    }
    leaf = (uint32_t)registers[REG_RAX];
    subleaf = (uint32_t)registers[REG_RCX];
    let_cpuid(1);
    __cpuid_count(leaf, subleaf, found[0], found[1], found[2], found[3]);
    let_cpuid(0);
    if (leaf == 7 && subleaf <= 1) {
        for (int i = 0; i < 4; ++i) {
            found[i] &= ~(subleaf == 0 ? HIDDEN_0[i] : HIDDEN_1[i]);
        }
    }
    registers[REG_RAX] = found[0];
    registers[REG_RBX] = found[1];
    registers[REG_RCX] = found[2];
    registers[REG_RDX] = found[3];
    registers[REG_RIP] += 2;
}

__attribute__((constructor)) static void hide(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = answer;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    if (sigaction(SIGSEGV, &action, NULL) != 0 || syscall(SYS_arch_prctl, ARCH_CPUID_SET, 0) != 0) {
        _exit(NOT_ABLE);
    }
}
