"""The functions of scalars that expressions may call: those of C's <math.h>, and fixed-point arithmetic.

What a kernel rounds by is written here once, from the definitions in docs/numerics.md: the evaluator computes by it,
and a file of C has each that it calls as a `static inline` function, under the comment that stands here. None calls
another, so that even where a compiler inlines nothing a call of one is the last on a path.
"""

from collections.abc import Callable

from bytewright.diagnostics import InternalError
from bytewright.ir.expr import Expr, ScalarFunction, Var, cast, const, equal, select
from bytewright.ir.types import DType

I32, I64, F32, F64 = DType.I32, DType.I64, DType.F32, DType.F64


def _of_math(name: str, parameters: str = "x", dtype: DType = F32) -> ScalarFunction:
    return ScalarFunction(name, tuple(Var(parameter, dtype) for parameter in parameters), dtype)


EXP, TANH, SQRT = _of_math("expf"), _of_math("tanhf"), _of_math("sqrtf")
ROUND, FLOOR, RINT, CEIL = _of_math("roundf"), _of_math("floorf"), _of_math("rintf"), _of_math("ceilf")
ABS, LOG, EXPM1, ERFC = _of_math("fabsf"), _of_math("logf"), _of_math("expm1f"), _of_math("erfcf")
SIN, COS = _of_math("sinf"), _of_math("cosf")
POW, FMA, FMOD = _of_math("powf", "xy"), _of_math("fmaf", "xyz"), _of_math("fmodf", "xy")
ATAN2 = _of_math("atan2f", "yx")
EXP_WIDE = _of_math("exp", dtype=F64)

# Names a step on the way to a result.
_Let = Callable[[str, Expr], Var]


def _defined(result: Callable[..., Expr], /, **types: DType) -> ScalarFunction:
    """A function of parameters with these types, whose `result` is given `_Let` and the parameters.

    It is named after `result`, and its comment is the docstring of that.

    Raises:
        InternalError: There is no docstring, as under `python -OO`: generated C would lack the comment.
    """
    if not result.__doc__:
        raise InternalError(
            f"{result.__name__} has no docstring, which is its comment in C; is this python -OO?"
        )
    steps: list[tuple[Var, Expr]] = []

    def let(step: str, value: Expr) -> Var:
        steps.append((Var(step, value.dtype), value))
        return steps[-1][0]

    parameters = tuple(Var(parameter, dtype) for parameter, dtype in types.items())
    value = result(let, *parameters)
    name, comment = result.__name__.removeprefix("_"), " ".join(result.__doc__.split())
    return ScalarFunction(name, parameters, value.dtype, value, tuple(steps), comment)


def _high_multiply_wide(let: _Let, value: Expr, multiplier: Expr) -> Expr:
    """value * multiplier / 2^31, rounded half up: SaturatingRoundingDoublingHighMul of gemmlowp. The multiplier is not
    negative, so nothing saturates.
    """
    product = let("product", cast(value, I64) * cast(multiplier, I64))
    return cast((product + 2**30) >> 31, I32)


def _high_multiply(let: _Let, value: Expr, multiplier: Expr) -> Expr:
    """As high_multiply_wide (value * multiplier / 2^31, rounded half up), in one shift by 32, for |value| < 2^30."""
    product = let("product", cast(value * 2, I64) * cast(multiplier, I64))
    return cast((product + 2**31) >> 32, I32)


def _double_round_wide(let: _Let, value: Expr, multiplier: Expr, shift: Expr) -> Expr:
    """value * multiplier / 2^31, rounded half up, then divided by 2^shift, rounded half away from zero:
    MultiplyByQuantizedMultiplier of TensorFlow Lite, double rounding. Shifts are 0 to 31.
    """
    scaled = let("scaled", _high_multiply_wide(let, value, multiplier))
    mask = let("mask", const(2**31 - 1) >> (31 - shift))
    threshold = let("threshold", (mask >> 1) - (scaled >> 31))
    # -1 where the rest is above the threshold. As a comparison, of which gcc turns some of a block round, it is slower.
    above = let("above", (threshold - (scaled & mask)) >> 31)
    return (scaled >> shift) - above


def _double_round(let: _Let, value: Expr, multiplier: Expr, shift: Expr) -> Expr:
    """value * multiplier / 2^31, rounded half up, then divided by 2^shift, rounded half away from zero:
    MultiplyByQuantizedMultiplier of TensorFlow Lite, double rounding; for |value| < 2^30, shifts 1 to 31.
    """
    scaled = let("scaled", _high_multiply(let, value, multiplier))
    half = let("half", const(1) << (shift - 1))
    return (scaled + (scaled >> 31) + half) >> shift


def _double_round_up(let: _Let, value: Expr, multiplier: Expr, shift: Expr) -> Expr:
    """value * multiplier / 2^31, rounded half up, then divided by 2^shift, rounded half up: as
    MultiplyByQuantizedMultiplier where negative results are cut off. Shifts are 0 to 31.
    """
    wide = let("wide", cast(_high_multiply_wide(let, value, multiplier), I64))
    half = let("half", (const(1, I64) << cast(shift, I64)) >> 1)
    return cast((wide + half) >> cast(shift, I64), I32)


def _single_round(let: _Let, value: Expr, multiplier: Expr, shift: Expr) -> Expr:
    """value * multiplier / 2^(31 + shift), rounded half up once: apply_scale_32 of TOSA 1.0, single rounding."""
    wide = let("wide", cast(shift, I64))
    half = let("half", const(1, I64) << (wide + 30))
    return cast((cast(value, I64) * cast(multiplier, I64) + half) >> (wide + 31), I32)


def _scale_half_up(let: _Let, value: Expr, multiplier: Expr, shift: Expr) -> Expr:
    """value * multiplier / 2^shift, rounded half up once: MultiplyByQuantizedMultiplier of TensorFlow Lite for sums of
    64 bits, with a multiplier of 16.
    """
    wide = let("wide", cast(shift, I64))
    half = let("half", const(1, I64) << (wide - 1))
    return cast((cast(value, I64) * cast(multiplier, I64) + half) >> wide, I32)


def _scale_half_up_wide(let: _Let, value: Expr, multiplier: Expr, shift: Expr) -> Expr:
    """As scale_half_up (value * multiplier / 2^shift, rounded half up), of 48 bits."""
    return _scale_half_up(let, value, multiplier, shift)


def _scale_high(let: _Let, value: Expr, multiplier: Expr, shift: Expr) -> Expr:
    """value * multiplier / 2^31, rounded down, then divided by 2^shift, rounded half up: with a multiplier of 16 bits
    in the upper half of 32 it equals scale_half_up, for |value| < 2^30, shifts 1 to 30.
    """
    high = let("high", cast((cast(value, I64) * cast(multiplier, I64)) >> 31, I32))
    half = let("half", const(1) << (shift - 1))
    return (high + half) >> shift


def _scale_linear(let: _Let, value: Expr, multiplier: Expr, addend: Expr, shift: Expr) -> Expr:
    """(value * multiplier + addend) / 2^shift, rounded down. The numbers are chosen so that this equals, for every
    accumulator that can occur, scaling by a double and rounding half away from zero, as LiteRT does here.
    """
    del let
    return cast((cast(value, I64) * cast(multiplier, I64) + addend) >> cast(shift, I64), I32)


def _scale_symmetric(let: _Let, value: Expr, high: Expr, low: Expr, addend: Expr, shift: Expr) -> Expr:
    """(|value| * (high + low / 2^32) + addend) / 2^(32 + shift), rounded down, with the sign of the value, which is not
    -2^31. The numbers are chosen so that this equals, for every accumulator that can occur, scaling by a double and
    rounding half away from zero, as LiteRT does here.
    """
    magnitude = let("magnitude", cast(select(value < 0, 0 - value, value), I64))
    part = let("part", (magnitude * cast(low, I64)) >> 32)
    total = let("total", magnitude * cast(high, I64) + part + addend)
    scaled = let("scaled", cast(total >> 32, I32) >> shift)
    return select(value < 0, 0 - scaled, scaled)


def _float_round(let: _Let, value: Expr, scale: Expr, offset: Expr) -> Expr:
    """value * scale + offset in float32, rounded once, then to the nearest integer, ties to even. The numbers are
    chosen so that this equals the exact rescale, its zero point included, for every accumulator that can occur.
    """
    del let
    return cast(RINT(FMA(cast(value, F32), scale, offset)), I32)


def _float_round_signed(let: _Let, value: Expr, scale: Expr, offset: Expr, below: Expr) -> Expr:
    """As float_round, with an offset of their own for values below zero, where rescales round ties the other way."""
    del let
    return cast(RINT(FMA(cast(value, F32), scale, select(value < 0, below, offset))), I32)


def _float_sum(let: _Let, left: Expr, right: Expr, left_scale: Expr, right_scale: Expr, offset: Expr) -> Expr:
    """left * left_scale + right * right_scale + offset in float32, then to the nearest integer, ties to even. The
    numbers are chosen so that this equals the exact sum of two quantised values for each of the 65536 pairs.
    """
    shifted = let("shifted", FMA(cast(right, F32), right_scale, offset))
    return cast(RINT(FMA(cast(left, F32), left_scale, shifted)), I32)


def _real_round(let: _Let, value: Expr, scale: Expr, low: Expr, high: Expr) -> Expr:
    """value * scale in double precision, limited to [low, high] and rounded half away from zero, as LiteRT does here.
    Truncation and the difference after it are exact.
    """
    scaled = let("scaled", cast(value, F64) * scale)
    raised = let("raised", select(scaled < low, low, scaled))
    return _rounded(let, let("limited", select(high < raised, high, raised)))


def _real_round_wide(let: _Let, value: Expr, scale: Expr, low: Expr, high: Expr) -> Expr:
    """As real_round (value * scale in double precision, limited, rounded half away from zero), of 48 bits."""
    return _real_round(let, value, scale, low, high)


def _widened(let: _Let, least: Expr, greatest: Expr) -> tuple[Var, Var, Expr]:
    """A range to which zero has been added, and a step of int8 over it, in double precision."""
    low = let("low", select(least < 0.0, least, const(0.0, F32)))
    high = let("high", select(greatest > 0.0, greatest, const(0.0, F32)))
    return low, high, cast(high - low, F64) / 255.0


def _dynamic_scale(let: _Let, least: Expr, greatest: Expr) -> Expr:
    """A step of int8 over the range of some values and zero, as LiteRT's hybrid kernels take it; 1 where that is 0."""
    scale = let("scale", cast(_widened(let, least, greatest)[2], F32))
    return select(scale > 0.0, scale, const(1.0, F32))


def _dynamic_zero_point(let: _Let, least: Expr, greatest: Expr) -> Expr:
    """The value of int8 that stands for zero, as LiteRT's hybrid kernels take it: counted from that end of the range
    from which the error is less, and rounded half away from zero.
    """
    low, high, step = _widened(let, least, greatest)
    step = let("step", step)
    below, above = let("below", cast(low, F64) / step), let("above", cast(high, F64) / step)
    is_below = const(128.0, F64) - below < above + 127.0
    place = let("place", select(is_below, const(-128.0, F64) - below, const(127.0, F64) - above))
    raised = let("raised", select(place > -128.0, place, const(-128.0, F64)))
    limited = let("limited", select(raised < 127.0, raised, const(127.0, F64)))
    return _rounded(let, limited)


def _rounded(let: _Let, limited: Expr) -> Expr:
    """Half away from zero, of what fits 32 bits."""
    whole = let("whole", cast(limited, I32))
    rest = let("rest", limited - cast(whole, F64))
    return whole + select(rest >= 0.5, const(1), const(0)) - select(rest <= -0.5, const(1), const(0))


def _nibble(let: _Let, byte: Expr, number: Expr) -> Expr:
    """Four bits of a byte less 8: the lower half for an even number of an element, the upper one for an odd number."""
    del let
    return ((byte >> ((number & 1) << 2)) & 15) - 8


def _divide_round(let: _Let, total: Expr, count: Expr) -> Expr:
    """total / count, rounded half away from zero: the mean of a window, as TensorFlow Lite rounds it."""
    half = let("half", count // 2)
    return select(total > 0, (total + half) // count, 0 - (half - total) // count)


def _multiply_q31(let: _Let, left: Expr, right: Expr) -> Expr:
    """The product of two fixed-point numbers with 31 fractional bits, rounded half up, as gemmlowp's
    SaturatingRoundingDoublingHighMul where nothing saturates.
    """
    del let
    return (left * right + 2**30) >> 31


def _shift_round(let: _Let, value: Expr, shift: Expr) -> Expr:
    """value / 2^shift, rounded half up; shifts 1 to 62."""
    half = let("half", const(1, value.dtype) << (shift - 1))
    return (value + half) >> shift


def _floor_quotient(let: _Let, left: Expr, right: Expr) -> Expr:
    """The greatest integer not above left / right, the quotient taken in double precision, as TensorFlow Lite does."""
    exact = let("exact", cast(left, F64) / cast(right, F64))
    within = let(
        "within", select(exact < 2.0**53, select(exact > -(2.0**53), exact, const(0.0, F64)), const(0.0, F64))
    )
    whole = let("whole", cast(cast(within, I64), F64))
    floor = let("floor", whole - select(whole > within, const(1.0, F64), const(0.0, F64)))
    return cast(select(equal(within, exact), floor, exact), F32)


def _floor_remainder(let: _Let, left: Expr, right: Expr) -> Expr:
    """What left is more than a multiple of right, with the sign of right."""
    rest = let("rest", FMOD(left, right))
    turned = let("turned", rest + right)
    return select(right < 0.0, select(rest > 0.0, turned, rest), select(rest < 0.0, turned, rest))


def _integer_power(let: _Let, base: Expr, exponent: Expr) -> Expr:
    """base to the power of exponent, which is taken for 0 where it is below that; what leaves 32 bits saturates."""
    # By squares. Numbers beyond 32 bits stay there, in 33: what is left to multiply with is no zero then.
    least = let("least", (exponent & 1) + 32)
    few = let("few", select(exponent < 0, const(0), select(exponent > least, least, exponent)))
    power, square = let("power_0", const(1, I64)), let("square_0", cast(base, I64))
    most = const(2**31, I64)
    for bit in range(6):
        if bit:
            larger = let(f"larger_{bit}", square * square)
            square = let(f"square_{bit}", select(larger > most, most, larger))
        taken = select(equal((few >> bit) & 1, const(1)), square, const(1, I64))
        product = let(f"product_{bit}", power * taken)
        above = select(product > most, most, product)
        power = let(f"power_{bit + 1}", select(product < -(2**31), const(-(2**31), I64), above))
    return cast(power - select(equal(power, most), const(1, I64), const(0, I64)), I32)


def _bit_length_32(let: _Let, value: Expr) -> Expr:
    """How many bits a number has, of 0 to 2^32 - 1; none if it is 0."""
    upper = let("upper", cast(value >> 16, I32))
    part = let("part0", select(upper > 0, upper, cast(value & 0xFFFF, I32)))
    length = let("length0", select(upper > 0, const(16), const(0)))
    for number, step in enumerate((8, 4, 2, 1), start=1):
        upper = let(f"upper{number}", part >> step)
        length = let(f"length{number}", select(upper > 0, length + step, length))
        part = let(f"part{number}", select(upper > 0, upper, part))
    return length + part


_LOWER_HALF = 2**32 - 1


def _of_halves(high: Expr, low: Expr) -> Expr:
    """The number of 64 bits with the lower half of each; what a half has beyond 32 bits is left out."""
    return cast(cast(high, I32), I64) * 2**32 + (low & _LOWER_HALF)


def _wrapping_add_64(let: _Let, left: Expr, right: Expr) -> Expr:
    """left + right modulo 2^64, from halves of 32 bits, as C does not define what overflows."""
    low = let("low", (left & _LOWER_HALF) + (right & _LOWER_HALF))
    return _of_halves((left >> 32) + (right >> 32) + (low >> 32), low)


def _wrapping_subtract_64(let: _Let, left: Expr, right: Expr) -> Expr:
    """left - right modulo 2^64, from halves of 32 bits, as C does not define what overflows."""
    low = let("low", (left & _LOWER_HALF) - (right & _LOWER_HALF))
    return _of_halves((left >> 32) - (right >> 32) + (low >> 32), low)


def _wrapping_multiply_64(let: _Let, left: Expr, right: Expr) -> Expr:
    """left * right modulo 2^64, from products of 32 by 16 bits, as C does not define what overflows."""
    low, other = let("low", left & _LOWER_HALF), let("other", right & _LOWER_HALF)
    middle = let("middle", low * (other >> 16))
    product = let("product", low * (other & 0xFFFF) + ((middle & 0xFFFF) << 16))
    outer = cast(cast(low * (right >> 32), I32), I64) + cast(cast((left >> 32) * other, I32), I64)
    return _of_halves((product >> 32) + (middle >> 16) + outer, product)


# gemmlowp's constants in Q0.15 and Q2.13: exp(-1/8), 1/3, exp(-2^k) for k = -2 .. 4, 48/17 and -32/17.
_EXP_AROUND, _THIRD = 28918, 10923
_EXP_OF_MINUS_POWERS = (25520, 19875, 12055, 4435, 600, 11, 0)
_FIRST_GUESS = (23130, -15420)
_ONE_15 = (1 << 15) - 1


def _multiply_15(left: Expr, right: Expr | int) -> Expr:
    """The product of two numbers with 15 fractional bits, rounded half up."""
    return (left * right + 2**14) >> 15


def _saturated_15(let: _Let, name: str, value: Expr) -> Expr:
    wide = let(f"wide_{name}", value)
    return let(name, select(wide < _ONE_15, wide, const(_ONE_15)))


def _number(value: Expr | int) -> Expr:
    return value if isinstance(value, Expr) else const(value)


def _reciprocal(let: _Let, magnitude: Expr, integer_bits: Expr | int) -> Expr:
    """2 / (1 + exp(-x)) in Q2.13, of a magnitude x in Q(integer_bits).(15-integer_bits).

    The magnitude is a multiple of a quarter and a rest in (0, 1/4], whose exponential is a polynomial around -1/8.
    """
    value = let("value", 0 - magnitude)
    first_bit = let("first_bit", 13 - _number(integer_bits))
    quarter = let("quarter", const(1) << first_bit)
    rest = let("rest", (value & (quarter - 1)) - quarter)
    x = let("x", rest * (const(1) << _number(integer_bits)) + 2**12)
    x2 = let("x2", _multiply_15(x, x))
    x4 = let("x4", _multiply_15(x2, x2))
    cubic = let("cubic", _multiply_15(((x4 + 2) >> 2) + _multiply_15(x2, x), _THIRD) + x2)
    tail = let("tail", (cubic + (cubic >> 31) + 1) >> 1)
    decay = _saturated_15(let, "near", _multiply_15(x + tail, _EXP_AROUND) + _EXP_AROUND)
    quarters = let("quarters", (rest - value) >> first_bit)
    for bit, factor in enumerate(_EXP_OF_MINUS_POWERS):
        is_set = equal((quarters >> bit) & 1, const(1))
        decay = let(f"decay{bit}", select(is_set, _multiply_15(decay, factor), decay))
    is_far = (const(32) << (15 - _number(integer_bits))) < magnitude
    decay = let("decay", select(is_far, const(0), decay))
    half_sum = let("half_sum", (select(equal(magnitude, const(0)), const(_ONE_15), decay) + _ONE_15 + 1) >> 1)
    guess = let("guess", _multiply_15(half_sum, _FIRST_GUESS[1]) + _FIRST_GUESS[0])
    for turn in range(3):
        error = let(f"error{turn}", 2**13 - _multiply_15(half_sum, guess))
        guess = let(f"guess{turn}", guess + _multiply_15(guess, error) * 4)
    return guess


def _logistic_15(let: _Let, gate: Expr) -> Expr:
    """The logistic function of a 16-bit number with 3 integer bits, with 15 fractional bits: gemmlowp's, as TensorFlow
    Lite has it for gates of LSTMs.
    """
    twice = _reciprocal(let, let("magnitude", select(gate < 0, 0 - gate, gate)), 3)
    upper = _saturated_15(let, "upper", twice * 2)
    return select(equal(gate, const(0)), const(2**14), select(gate < 0, _ONE_15 - upper, upper))


def _tanh_15(let: _Let, gate: Expr, integer_bits: Expr) -> Expr:
    """The hyperbolic tangent of a 16-bit number with 0 to 6 integer bits, with 15 fractional bits: gemmlowp's, as
    TensorFlow Lite has it for cells of LSTMs.
    """
    bits = let("bits", integer_bits + 1)
    twice = _reciprocal(let, let("magnitude", select(gate < 0, 0 - gate, gate)), bits)
    found = _saturated_15(let, "found", (twice - 2**13) * 4)
    return select(equal(gate, const(0)), const(0), select(gate < 0, 0 - found, found))


HIGH_MULTIPLY_WIDE = _defined(_high_multiply_wide, value=I32, multiplier=I32)
HIGH_MULTIPLY = _defined(_high_multiply, value=I32, multiplier=I32)
DOUBLE_ROUND_WIDE = _defined(_double_round_wide, value=I32, multiplier=I32, shift=I32)
DOUBLE_ROUND = _defined(_double_round, value=I32, multiplier=I32, shift=I32)
DOUBLE_ROUND_UP = _defined(_double_round_up, value=I32, multiplier=I32, shift=I32)
SINGLE_ROUND = _defined(_single_round, value=I32, multiplier=I32, shift=I32)
SCALE_HALF_UP = _defined(_scale_half_up, value=I32, multiplier=I32, shift=I32)
SCALE_HALF_UP_WIDE = _defined(_scale_half_up_wide, value=I64, multiplier=I32, shift=I32)
SCALE_HIGH = _defined(_scale_high, value=I32, multiplier=I32, shift=I32)
SCALE_LINEAR = _defined(_scale_linear, value=I32, multiplier=I32, addend=I64, shift=I32)
SCALE_SYMMETRIC = _defined(_scale_symmetric, value=I32, high=I32, low=I32, addend=I64, shift=I32)
FLOAT_ROUND = _defined(_float_round, value=I32, scale=F32, offset=F32)
FLOAT_ROUND_SIGNED = _defined(_float_round_signed, value=I32, scale=F32, offset=F32, below=F32)
FLOAT_SUM = _defined(_float_sum, left=I32, right=I32, left_scale=F32, right_scale=F32, offset=F32)
REAL_ROUND = _defined(_real_round, value=I32, scale=F64, low=F64, high=F64)
REAL_ROUND_WIDE = _defined(_real_round_wide, value=I64, scale=F64, low=F64, high=F64)
DYNAMIC_SCALE = _defined(_dynamic_scale, least=F32, greatest=F32)
DYNAMIC_ZERO_POINT = _defined(_dynamic_zero_point, least=F32, greatest=F32)
BIT_LENGTH = _defined(_bit_length_32, value=I64)
NIBBLE = _defined(_nibble, byte=I32, number=I32)
DIVIDE_ROUND = _defined(_divide_round, total=I32, count=I32)
MULTIPLY_Q31 = _defined(_multiply_q31, left=I64, right=I64)
SHIFT_ROUND = _defined(_shift_round, value=I64, shift=I64)
FLOOR_QUOTIENT = _defined(_floor_quotient, left=F32, right=F32)
FLOOR_REMAINDER = _defined(_floor_remainder, left=F32, right=F32)
INTEGER_POWER = _defined(_integer_power, base=I32, exponent=I32)
WRAPPING_ADD = _defined(_wrapping_add_64, left=I64, right=I64)
WRAPPING_SUBTRACT = _defined(_wrapping_subtract_64, left=I64, right=I64)
WRAPPING_MULTIPLY = _defined(_wrapping_multiply_64, left=I64, right=I64)
LOGISTIC_15 = _defined(_logistic_15, gate=I32)
TANH_15 = _defined(_tanh_15, gate=I32, integer_bits=I32)
# Under the names that texts of programs call them by.
SCALAR_FUNCTIONS = {each.name: each for each in tuple(globals().values()) if isinstance(each, ScalarFunction)}
MATH_FUNCTIONS = tuple(each for each in SCALAR_FUNCTIONS.values() if each.result is None)
