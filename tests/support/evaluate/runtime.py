"""What translated PrimFuncs call while they run: memory, arithmetic that Python lacks, and refusals.

Memory is bytes, as in C, so that buffers that share a pool overwrite each other when their plan is wrong. Beside
every memory lies one of the same size that holds the mark of the buffer that wrote there, so that one that reads what
another one left is found, also where both are alive in one call.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TypeAlias

import numpy as np

from bytewright.diagnostics import InternalError

Memory: TypeAlias = "memoryview[Any]"
Pair: TypeAlias = "tuple[memoryview[Any], memoryview[Any]]"

SHADOW_FORMATS = {1: "B", 2: "H", 4: "I", 8: "Q"}
_GARBAGE = b"\xa5"


def recast(memory: Memory | bytes | bytearray, kind: str) -> Memory:
    """The same bytes as elements of another format of `struct`; memory without elements stays as it is."""
    view: Any = memoryview(memory)
    if view.nbytes == 0:
        return view
    return view.cast("B").cast(kind) if view.format != "B" else view.cast(kind)


_cell = recast(bytearray(4), "f")


def rt_f32(value: float) -> float:
    """The nearest float32, as a Python float. One operation in double and this are one operation in float32."""
    _cell[0] = value
    return _cell[0]


def rt_f32_of_i64(value: int) -> float:
    """The nearest float32 of an integer, rounded once."""
    return float(np.float32(np.int64(value)))


def rt_divide_float(left: float, right: float) -> float:
    """IEEE division in double, infinities and NaN included."""
    if right != 0:
        return left / right
    if left == 0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


def rt_divide(left: int, right: int, function: str) -> int:
    """C's division: truncates towards zero."""
    if right == 0:
        raise InternalError(f"'{function}': division of {left} by zero")
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def rt_remainder(left: int, right: int, function: str) -> int:
    """C's remainder: takes the sign of the dividend."""
    return left - rt_divide(left, right, function) * right


def rt_shift(amount: int, width: int, function: str) -> int:
    """A shift's right operand, checked."""
    if not 0 <= amount < width:
        raise InternalError(f"'{function}': shift by {amount} of {width} bits")
    return amount


def rt_shifted(value: int, function: str) -> int:
    """What is shifted left, checked: C leaves a shift of what is negative undefined."""
    if value < 0:
        raise InternalError(f"'{function}': {value} is shifted left")
    return value


def rt_truncate(value: float, low: int, high: int, function: str, dtype: str) -> int:
    """A float as an integer; C leaves what does not fit undefined."""
    if not math.isfinite(value) or not low <= math.trunc(value) <= high:
        raise InternalError(f"'{function}': {value!r} does not fit {dtype}")
    return math.trunc(value)


def rt_overflow(function: str, operator: str, dtype: str, value: int) -> NoReturn:
    """Integer arithmetic left its type."""
    raise InternalError(f"'{function}': '{operator}' overflows {dtype} with {value}")


def rt_outside(function: str, buffer: str, axis: int, index: int, extent: int) -> NoReturn:
    """An index left its axis."""
    raise InternalError(
        f"'{function}': index {index} of '{buffer}' is outside axis {axis} of extent {extent}"
    )


def rt_unset(function: str, buffer: str, index: int) -> NoReturn:
    """Memory is read that nothing wrote."""
    raise InternalError(f"'{function}': element {index} of '{buffer}' is read before it is written")


def rt_forget(shadow: Memory, mark: int) -> None:
    """What a buffer wrote counts as not written from here on."""
    if shadow.nbytes:
        elements = np.frombuffer(shadow, dtype=f"u{shadow.itemsize}")
        elements[elements == mark] = 0


def rt_unknown(function: str, callee: str) -> NoReturn:
    """A call of something that is not a PrimFunc of the module."""
    raise InternalError(f"'{function}' calls '{callee}', which is not a function of the module")


def rt_allocate(num_elements: int, kind: str) -> Pair:
    """Memory that nothing has written yet."""
    size = np.dtype(kind).itemsize
    data = bytearray(_GARBAGE * (num_elements * size))
    return recast(data, kind), recast(bytearray(len(data)), SHADOW_FORMATS[size])


def given(content: bytes | bytearray, kind: str) -> Pair:
    """Memory whose content is known; read only if it is `bytes`."""
    size = np.dtype(kind).itemsize
    return recast(content, kind), recast(bytearray(b"\1" * len(content)), SHADOW_FORMATS[size])


def _slice(data: Memory, shadow: Memory, index: int, length: int, kind: str) -> Pair:
    if data.format == kind:
        return data[index : index + length], shadow[index : index + length]
    size = np.dtype(kind).itemsize
    viewed = recast(recast(data[index:], "B")[: length * size], kind)
    return viewed, recast(recast(shadow[index:], "B")[: length * size], SHADOW_FORMATS[size])


def rt_view(
    data: Memory, shadow: Memory, mark: int, index: int, length: int, kind: str, function: str, view: str
) -> tuple[Memory, Memory, int]:
    """A view of `length` elements of format `kind` that lie from `index` on; read only."""
    available = (len(data) - index) * data.itemsize // np.dtype(kind).itemsize
    if index < 0 or available < length:
        raise InternalError(
            f"'{function}': view '{view}' of {length} elements starts at element {index} of {len(data)}"
        )
    viewed, written = _slice(data, shadow, index, length, kind)
    return viewed.toreadonly(), written, mark


def rt_region(
    data: Memory,
    shadow: Memory,
    mark: int,
    index: int,
    length: int | None,
    readonly: bool,
    function: str,
    parameter: str,
) -> tuple[Memory, Memory, int]:
    """A pointer argument: the elements from `index` on, as many as the parameter has (None: all)."""
    wanted = len(data) - index if length is None else length
    if index < 0 or wanted < 0 or index + wanted > len(data):
        raise InternalError(
            f"'{function}' passes elements from {index} of {len(data)} to '{parameter}', which has {wanted}"
        )
    passed, written = data[index : index + wanted], shadow[index : index + wanted]
    return (passed.toreadonly() if readonly else passed), written, mark


def rt_exp(value: float) -> float:
    """C's `exp`."""
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf


def rt_powf(left: float, right: float) -> float:
    """C's `powf`, as numpy has it."""
    with np.errstate(all="ignore"):
        return rt_f32(float(np.float64(left) ** np.float64(right)))


def rt_atan2f(left: float, right: float) -> float:
    """C's `atan2f`."""
    return rt_f32(math.atan2(left, right))


def rt_fmodf(left: float, right: float) -> float:
    """C's `fmodf`, which is exact."""
    return math.fmod(left, right) if math.isfinite(left) and right != 0 else math.nan


def _log(value: float) -> float:
    if value == 0:
        return -math.inf
    return math.log(value) if value > 0 else math.nan


# Functions of <math.h> of one float32: those that are computed in double and rounded once,
_ROUNDED: dict[str, Callable[[float], float]] = {
    "fabsf": math.fabs,
    "expf": rt_exp,
    "tanhf": math.tanh,
    "sqrtf": lambda value: math.sqrt(value) if value >= 0 else math.nan,
    "logf": _log,
    "expm1f": lambda value: math.expm1(value) if value < 100 else value * math.inf,
    "erfcf": math.erfc,
    "sinf": lambda value: math.sin(value) if math.isfinite(value) else math.nan,
    "cosf": lambda value: math.cos(value) if math.isfinite(value) else math.nan,
}
# and those that are exact, of finite numbers; `rintf` rounds ties to even, as it does unless a program says otherwise.
_EXACT: dict[str, Callable[[float], float]] = {
    "roundf": lambda value: math.copysign(math.floor(abs(value) + 0.5), value),
    "floorf": lambda value: float(math.floor(value)),
    "ceilf": lambda value: -float(math.floor(-value)),
    "rintf": lambda value: math.copysign(float(round(value)), value),
}


def _rounded(function: Callable[[float], float]) -> Callable[[float], float]:
    return lambda value: rt_f32(function(value))


def _of_finite(function: Callable[[float], float]) -> Callable[[float], float]:
    """What a function makes of finite numbers; infinities, and what is no number, stay what they are."""
    return lambda value: function(value) if math.isfinite(value) else value


def rt_fmaf(left: float, right: float, addend: float) -> float:
    """C's `fmaf`: the product of two float32 is exact in double, and their sum is rounded once.

    Where a double does not hold the sum, it is made odd in its last bit, so that it rounds as the sum does.
    """
    product = left * right
    total = product + addend
    if not math.isfinite(total):
        return rt_f32(total)
    back = total - product
    rest = (product - (total - back)) + (addend - back)
    if rest != 0 and not _is_odd(total):
        total = math.nextafter(total, math.inf if rest > 0 else -math.inf)
    return rt_f32(total)


def _is_odd(value: float) -> bool:
    """Whether the last bit of a double's significand is set."""
    return bool(np.float64(value).view(np.int64) & 1)


class Pools:
    """The workspace pools of a planned module, each as large as its buffers ask; and what survives runs."""

    def __init__(self) -> None:
        self._pools: dict[str, tuple[bytearray, bytearray]] = {}
        self._begun_with: dict[str, bytes] = {}  # of each state
        self._kept: dict[str, Pair] = {}  # of the states that a run has met

    def reserve(self, pool: str, size_bytes: int) -> None:
        """Makes the pool at least this large; before anything runs."""
        data, shadow = self._pools.setdefault(pool, (bytearray(), bytearray()))
        data.extend(_GARBAGE * max(0, size_bytes - len(data)))
        shadow.extend(bytes(max(0, size_bytes - len(shadow))))

    def place(self, pool: str, offset: int, num_elements: int, kind: str, mark: int) -> Pair:
        """The elements of a planned buffer; what it left there when it was last allocated counts as not written."""
        data, written = self._at(pool, offset, num_elements, kind)
        rt_forget(written, mark)
        return data, written

    def keep(self, name: str, place: tuple[str, int] | None, num_elements: int, kind: str, mark: int) -> Pair:
        """The elements of a state, as the run before left them; its place is a pool and an offset, once planned."""
        if name not in self._kept:
            found = rt_allocate(num_elements, kind) if place is None else self._at(*place, num_elements, kind)
            data, written = found
            recast(data, "B")[:] = self._begun_with[name]
            np.frombuffer(written, dtype=f"u{written.itemsize}")[:] = mark
            self._kept[name] = found
        return self._kept[name]

    def begin(self, states: Mapping[str, bytes]) -> None:
        """The bytes that the next run finds in each state."""
        self._begun_with, self._kept = dict(states), {}

    def saved(self) -> dict[str, bytes]:
        """The bytes of each state, as the last run left it."""
        kept = {name: recast(data, "B").tobytes() for name, (data, _) in self._kept.items()}
        return self._begun_with | kept

    def _at(self, pool: str, offset: int, num_elements: int, kind: str) -> Pair:
        size = np.dtype(kind).itemsize
        end = offset + num_elements * size
        data, shadow = self._pools[pool]
        written = recast(memoryview(shadow)[offset:end], SHADOW_FORMATS[size])
        return recast(memoryview(data)[offset:end], kind), written


def namespace(pools: Pools) -> dict[str, object]:
    """The global names of translated functions: those of this module that begin so, of <math.h>, and the pools."""
    helpers = {name: value for name, value in globals().items() if name.startswith("rt_")}
    helpers |= {f"rt_{name}": _rounded(function) for name, function in _ROUNDED.items()}
    helpers |= {f"rt_{name}": _of_finite(function) for name, function in _EXACT.items()}
    return {**helpers, "rt_pool": pools.place, "rt_keep": pools.keep}
