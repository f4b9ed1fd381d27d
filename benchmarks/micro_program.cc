/* A model in TensorFlow Lite Micro on a bare board: runs it on what inputs.bin has, and tells outputs, arena and where to count.
 *
 * Files are QEMU's, by semihosting. inputs.bin has the number of runs and the inputs of each, in the model's order;
 * outputs.bin gets the arena's bytes that TensorFlow Lite Micro says it uses, and the outputs of each run.
 */
#include <cstdint>
#include <cstring>

#include "tensorflow/lite/micro/micro_interpreter.h"
#include "tensorflow/lite/micro/micro_mutable_op_resolver.h"
#include "tensorflow/lite/micro/micro_resource_variable.h"
#include "tensorflow/lite/schema/schema_generated.h"

extern "C" {
extern const unsigned char model_content[];
extern unsigned char __stack_top[];
void __libc_init_array(void);
int main(void);
void reset(void);
}

namespace {

enum { SYS_OPEN = 1, SYS_WRITE0 = 4, SYS_WRITE = 5, SYS_READ = 6, SYS_EXIT_EXTENDED = 0x20 };
enum { READ_BINARY = 1, WRITE_BINARY = 5 };
constexpr std::size_t kArenaBytes = 3u << 20;
constexpr int kMostVariables = 32;
alignas(16) unsigned char arena[kArenaBytes];
alignas(16) unsigned char variables_arena[4096];

intptr_t Semihosting(int operation, const void *block) {
  register intptr_t r0 __asm__("r0") = operation;
  register const void *r1 __asm__("r1") = block;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
}

[[noreturn]] void Exit(int status) {
  const uint32_t block[2] = {0x20026u, static_cast<uint32_t>(status)};
  for (;;) {
    Semihosting(SYS_EXIT_EXTENDED, block);
  }
}

int Open(const char *path, int mode) {
  const uintptr_t block[3] = {reinterpret_cast<uintptr_t>(path), static_cast<uintptr_t>(mode), std::strlen(path)};
  return static_cast<int>(Semihosting(SYS_OPEN, block));
}

void Transfer(int operation, int file, const void *data, std::size_t size) {
  const uintptr_t block[3] = {static_cast<uintptr_t>(file), reinterpret_cast<uintptr_t>(data), size};
  if (Semihosting(operation, block) != 0) {
    Exit(2);
  }
}

}  // namespace

extern "C" {

__attribute__((noinline, used)) void harness_measure_begin(void) { __asm__ volatile("nop" ::: "memory"); }
__attribute__((noinline, used)) void harness_measure_end(void) { __asm__ volatile("nop" ::: "memory"); }

/* What the library logs. */
int _write(int, const char *text, int size) {
  char part[128];
  for (int done = 0; done < size; done += 127) {
    const int count = size - done < 127 ? size - done : 127;
    std::memcpy(part, text + done, static_cast<std::size_t>(count));
    part[count] = 0;
    Semihosting(SYS_WRITE0, part);
  }
  return size;
}

void reset(void) {
  *reinterpret_cast<volatile uint32_t *>(0xE000ED88u) |= 0xFu << 20; /* floating point and MVE */
  __asm__ volatile("dsb\n isb" ::: "memory");
  __libc_init_array();
  Exit(main());
}

void *__dso_handle = nullptr; /* no destructor is ever run */
void _init(void) {}
static void fault(void) { Exit(3); }
__attribute__((section(".vectors"), used)) void *const vectors[16] = {
    __stack_top,
    reinterpret_cast<void *>(reset),
    reinterpret_cast<void *>(fault),
    reinterpret_cast<void *>(fault),
    reinterpret_cast<void *>(fault),
    reinterpret_cast<void *>(fault),
    reinterpret_cast<void *>(fault),
};

int main(void) {
  static tflite::MicroMutableOpResolver<64> resolver;
#define ADD(operation) resolver.Add##operation();
  OPERATORS
  tflite::MicroAllocator *own = tflite::MicroAllocator::Create(variables_arena, sizeof variables_arena);
  tflite::MicroResourceVariables *variables = tflite::MicroResourceVariables::Create(own, kMostVariables);
  static tflite::MicroInterpreter interpreter(tflite::GetModel(model_content), resolver, arena, kArenaBytes, variables);
  uint32_t num_runs = 0;

  if (interpreter.AllocateTensors() != kTfLiteOk) {
    return 4;
  }
  const int inputs = Open("inputs.bin", READ_BINARY);
  const int outputs = Open("outputs.bin", WRITE_BINARY);
  const uint32_t used = static_cast<uint32_t>(interpreter.arena_used_bytes());
  Transfer(SYS_READ, inputs, &num_runs, sizeof num_runs);
  Transfer(SYS_WRITE, outputs, &used, sizeof used);
  for (uint32_t run = 0; run < num_runs; ++run) {
    for (std::size_t index = 0; index < interpreter.inputs_size(); ++index) {
      TfLiteTensor *tensor = interpreter.input(index);
      Transfer(SYS_READ, inputs, tensor->data.data, tensor->bytes);
    }
    harness_measure_begin();
    const TfLiteStatus status = interpreter.Invoke();
    harness_measure_end();
    if (status != kTfLiteOk) {
      return 5;
    }
    for (std::size_t index = 0; index < interpreter.outputs_size(); ++index) {
      TfLiteTensor *tensor = interpreter.output(index);
      Transfer(SYS_WRITE, outputs, tensor->data.data, tensor->bytes);
    }
  }
  return 0;
}

}  // extern "C"
