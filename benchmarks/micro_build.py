"""TensorFlow Lite Micro with CMSIS-NN for the emulated boards, built from copies of their repositories.

BYTEWRIGHT_MICRO_SOURCES names a folder with these: `tflite-micro`, `CMSIS-NN`, `CMSIS_6`, `gemmlowp`, `ruy`, and
`flatbuffers` and `kissfft` as its Makefile takes them, with its patches applied; `cxx` is where the C++ library for
Arm is, if the compiler does not find it by itself (`usr` of Debian's libstdc++-arm-none-eabi packages). Kernels are
compiled with -O2 and the rest with -Os, without assertions, as that Makefile does it for a release.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bytewright.execute.boards.facts import BOARDS

VARIABLE = "BYTEWRIGHT_MICRO_SOURCES"
FOLDER = Path(__file__).resolve().parent
_CORE = (
    *("tensorflow/lite/micro", "tensorflow/lite/micro/arena_allocator"),
    *("tensorflow/lite/micro/memory_planner", "tensorflow/lite/micro/tflite_bridge"),
    *("tensorflow/lite/core/api", "tensorflow/lite/core/c", "tensorflow/lite/kernels"),
    *("tensorflow/lite/kernels/internal", "tensorflow/lite/kernels/internal/reference"),
    *("tensorflow/compiler/mlir/lite/core/api", "tensorflow/compiler/mlir/lite/schema"),
)
# The operators of the table's networks: by their names the method that registers each, and what has its kernels.
OPERATORS = {
    "ADD": ("Add", "add"),
    "AVERAGE_POOL_2D": ("AveragePool2D", "pooling"),
    "BATCH_MATMUL": ("BatchMatMul", "batch_matmul"),
    "CAST": ("Cast", "cast"),
    "CIRCULAR_BUFFER": ("CircularBuffer", "circular_buffer"),
    "CONCATENATION": ("Concatenation", "concatenation"),
    "CONV_2D": ("Conv2D", "conv"),
    "DEPTHWISE_CONV_2D": ("DepthwiseConv2D", "depthwise_conv"),
    "DEQUANTIZE": ("Dequantize", "dequantize"),
    "DIV": ("Div", "div"),
    "FULLY_CONNECTED": ("FullyConnected", "fully_connected"),
    "HARD_SWISH": ("HardSwish", "hard_swish"),
    "LEAKY_RELU": ("LeakyRelu", "leaky_relu"),
    "LOGISTIC": ("Logistic", "logistic"),
    "MAX_POOL_2D": ("MaxPool2D", "pooling"),
    "MEAN": ("Mean", "reduce"),
    "MINIMUM": ("Minimum", "maximum_minimum"),
    "MUL": ("Mul", "mul"),
    "NEG": ("Neg", "neg"),
    "PAD": ("Pad", "pad"),
    "QUANTIZE": ("Quantize", "quantize"),
    "RELU": ("Relu", "activations"),
    "RESHAPE": ("Reshape", "reshape"),
    "RESIZE_BILINEAR": ("ResizeBilinear", "resize_bilinear"),
    "RESIZE_NEAREST_NEIGHBOR": ("ResizeNearestNeighbor", "resize_nearest_neighbor"),
    "RSQRT": ("Rsqrt", "elementwise"),
    "SOFTMAX": ("Softmax", "softmax"),
    "SQUARED_DIFFERENCE": ("SquaredDifference", "squared_difference"),
    "STRIDED_SLICE": ("StridedSlice", "strided_slice"),
    "SUB": ("Sub", "sub"),
    "SVDF": ("Svdf", "svdf"),
    "SignalEnergy": ("Energy", "energy"),
    "SignalFftAutoScale": ("FftAutoScale", "fft_auto_scale_kernel"),
    "SignalFilterBank": ("FilterBank", "filter_bank"),
    "SignalFilterBankLog": ("FilterBankLog", "filter_bank_log"),
    "SignalFilterBankSpectralSubtraction": (
        "FilterBankSpectralSubtraction",
        "filter_bank_spectral_subtraction",
    ),
    "SignalFilterBankSquareRoot": ("FilterBankSquareRoot", "filter_bank_square_root"),
    "SignalFramer": ("Framer", "framer"),
    "SignalPCAN": ("PCAN", "pcan"),
    "SignalRfft": ("Rfft", "rfft"),
    "SignalWindow": ("Window", "window"),
    "TANH": ("Tanh", "tanh"),
    "TFLite_Detection_PostProcess": ("DetectionPostprocess", "detection_postprocess"),
    "TRANSPOSE": ("Transpose", "transpose"),
    "TRANSPOSE_CONV": ("TransposeConv", "transpose_conv"),
}
_KERNELS = ("tensorflow/lite/micro/kernels", "signal/micro/kernels")
_BESIDE_KERNELS = ("kernel_util", "micro_tensor_utils", "fft_auto_scale")
_SIGNAL = ("signal/src", "signal/src/kiss_fft_wrappers")
_SPECIAL = "tensorflow/lite/micro/kernels/cmsis_nn"
_NOT_LINKED = ("_test.cc", "_generated_data.cc", "_test_common.cc", "test_helpers.cc", "mock_micro_graph.cc")
_INCLUDED = (
    *("tflite-micro", "gemmlowp", "flatbuffers/include", "kissfft", "ruy", "."),
    *("CMSIS_6", "CMSIS_6/CMSIS/Core/Include", "CMSIS-NN", "CMSIS-NN/Include"),
)
_FLAGS = (
    *("-ffunction-sections", "-fdata-sections", "-fno-unwind-tables", "-fno-asynchronous-unwind-tables"),
    *("-DNDEBUG", "-DTF_LITE_STATIC_MEMORY", "-DTF_LITE_DISABLE_X86_NEON", "-DCMSIS_NN", "-w"),
    *("-DKERNELS_OPTIMIZED_FOR_SPEED", "-DARM_NN_ENABLE_F16=0", "-DARM_NN_ENABLE_F32=0"),
)
_CXX_FLAGS = ("-std=c++17", "-fno-rtti", "-fno-exceptions", "-fno-threadsafe-statics")
_C_FLAGS = ("-std=c17",)


def sources() -> Path | None:
    """The folder of the copies, if the environment names one."""
    named = os.environ.get(VARIABLE)
    return Path(named).resolve() if named else None


def library(board: str, folder: Path) -> Path:
    """The library for a board, an archive; what is there already stays.

    Raises:
        subprocess.CalledProcessError: A compiler failed.
    """
    root = sources()
    assert root is not None, VARIABLE
    own = folder / board
    own.mkdir(parents=True, exist_ok=True)
    archive = own / "micro.a"
    if not archive.exists():
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            jobs = [
                pool.submit(_compile, board, root, source, level, own) for source, level in _sources(root)
            ]
            objects = [job.result() for job in jobs]
        subprocess.run(["arm-none-eabi-ar", "rcs", archive, *objects], check=True)
    return archive


def _sources(root: Path) -> Iterator[tuple[Path, str]]:
    """Each source with its level of optimisation; a kernel of CMSIS-NN stands for the portable one of its name."""
    micro = root / "tflite-micro"
    stems = {stem for _, stem in OPERATORS.values()} | set(_BESIDE_KERNELS)
    for folder, level in [(each, "-Os") for each in _CORE] + [
        (each, "-O2") for each in (*_KERNELS, *_SIGNAL)
    ]:
        for source in sorted((micro / folder).glob("*.cc")):
            special = micro / _SPECIAL / source.name
            is_kernel = folder in _KERNELS
            if source.name.endswith(_NOT_LINKED) or (
                is_kernel and source.stem.removesuffix("_common") not in stems
            ):
                continue
            yield (special if is_kernel and special.exists() else source), level
    for source in sorted((root / "CMSIS-NN" / "Source").rglob("*.c")):
        if not source.stem.endswith(("_f16", "_f32", "tables_flt")):
            yield source, "-O2"
    yield FOLDER / "micro_program.cc", "-O2"


def _compile(board: str, root: Path, source: Path, level: str, folder: Path) -> Path:
    """The object of a source; one that is there already stays."""
    path = source.relative_to(root) if source.is_relative_to(root) else Path(source.name)
    product = folder / f"{'_'.join(path.parts).replace('.', '_')}.o"
    if not product.exists():
        command = [
            *compiler(board, root, source.suffix == ".cc"),
            level,
            "-c",
            str(source),
            "-o",
            str(product),
        ]
        # Without conversion of branches where gcc 12 makes of one what its assembler takes for an instruction of MVE.
        for extra in ([], ["-fno-if-conversion", "-fno-if-conversion2"]):
            done = subprocess.run([*command, *extra], check=False, capture_output=True, text=True)
            if done.returncode == 0:
                return product
        raise RuntimeError(f"{source.name} does not compile:\n{done.stderr}")
    return product


def compiler(board: str, root: Path, is_cxx: bool) -> Sequence[str]:
    """The command without level and files."""
    flags = [*BOARDS[board].isa.flags, *_FLAGS, *(_CXX_FLAGS if is_cxx else _C_FLAGS)]
    flags.append("-DOPERATORS=" + " ".join(f"ADD({method})" for method, _ in OPERATORS.values()))
    library = root / "cxx" / "include" / "newlib" / "c++"
    if is_cxx and library.is_dir():
        (version,) = library.iterdir()
        flags += ["-isystem", str(version), "-isystem", str(version / "arm-none-eabi")]
    flags += [word for name in _INCLUDED for word in ("-I", str(root / name))]
    return ["arm-none-eabi-g++" if is_cxx else "arm-none-eabi-gcc", *flags]


def library_flags(board: str, root: Path) -> list[str]:
    """Where the linker finds the C++ library."""
    flags = BOARDS[board].isa.flags
    done = subprocess.run(
        ["arm-none-eabi-gcc", *flags, "-print-multi-directory"], check=True, capture_output=True, text=True
    )
    found = root / "cxx" / "lib" / "arm-none-eabi" / "newlib" / done.stdout.strip()
    return ["-L", str(found)] if found.is_dir() else []
