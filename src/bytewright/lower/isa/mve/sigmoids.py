"""gemmlowp's logistic function and hyperbolic tangent on MVE: four numbers of 16 bits, each in a lane of 32.

`vqrdmulh.s16` is the product of two numbers in Q0.15, rounded half up. What is computed in 16 bits is right in the
lower half of a lane; the upper one holds what means nothing, until the sign of the lower one is extended over it. VPR
is put back, as compilers have no name for it by which a statement could say that it changes.
"""

from bytewright.lower.isa.mve.assembly import Assembly, Registers
from bytewright.ops.arithmetic.fixedpoint import (
    EXP_MINUS_ONE_EIGHTH,
    EXP_OF_MINUS_POWERS,
    FORTY_EIGHT_OVER_SEVENTEEN,
    MINUS_THIRTY_TWO_OVER_SEVENTEEN,
    ONE_THIRD,
)
from bytewright.ops.arithmetic.fixedpoint16 import GATE_BITS, narrow

VECTOR = "int32x4_t"
_SIGN = 31
# A quarter, of a number with so many integer bits: 2^(13 - bits).
_QUARTER = 13
# From 2^6 quarters on the exponential is 0.
_NEAR_BITS = 6


def logistic_text() -> str:
    """The C text of LOGISTIC_15, of `gate`."""
    sigmoid = _Sigmoid()
    quarters, first_shift = GATE_BITS + 2, _SIGN - (_QUARTER - GATE_BITS)
    x = sigmoid.vector("x")
    sigmoid.line(f"vshl.i32 {x}, {sigmoid.below}, #{GATE_BITS}")
    decay = sigmoid.exponential_near_zero(x)
    sigmoid.decay(decay, sigmoid.below, [first_shift - bit for bit in range(quarters)])
    found = sigmoid.reciprocal(decay)
    sigmoid.line(
        f"vqshl.s16 {found}, {found}, #1",
        f"vpt.s32 lt, {sigmoid.gate}, zr",
        f"vsubt.i16 {found}, {sigmoid.greatest}, {found}",
    )
    return sigmoid.text(found, of_zero=f"vmovt.i16 {found}, #0x4000")


def tanh_text() -> str:
    """The C text of TANH_15, of `gate` with `integer_bits`."""
    sigmoid = _Sigmoid()
    bits = sigmoid.assembly.operand("integer_bits", VECTOR, Registers.VECTOR)
    x, high = sigmoid.vector("x"), sigmoid.vector("high")
    sigmoid.line(f"vadd.i32 {bits}, {bits}, {sigmoid.number(1)}", f"vshl.s32 {x}, {sigmoid.below}, {bits}")
    last = _NEAR_BITS - 1
    sigmoid.line(
        f"vadd.i32 {high}, {bits}, {sigmoid.number(_SIGN - _QUARTER - last)}",
        f"vshl.s32 {high}, {sigmoid.below}, {high}",
    )
    decay = sigmoid.exponential_near_zero(x)
    sigmoid.decay(decay, high, [last - bit for bit in range(_NEAR_BITS)])
    sigmoid.line(
        f"vmvn.i32 {high}, #0",
        f"vneg.s32 {bits}, {bits}",
        f"vadd.i32 {bits}, {bits}, {sigmoid.number(_QUARTER + _NEAR_BITS)}",
        f"vshl.s32 {high}, {high}, {bits}",
        f"vpt.s32 lt, {sigmoid.below}, {high}",
        f"vmovt.i32 {decay}, #0",
    )
    sigmoid.assembly.free(high)
    found = sigmoid.reciprocal(decay)
    sigmoid.line(
        f"vsub.i16 {found}, {found}, {sigmoid.one}",
        f"vqshl.s16 {found}, {found}, #2",
        f"vpt.s32 lt, {sigmoid.gate}, zr",
        f"vnegt.s16 {found}, {found}",
    )
    return sigmoid.text(found, of_zero=f"vmovt.i32 {found}, #0")


class _Sigmoid:
    """The statement of one of them, under construction.

    Attributes:
        gate: The register of the argument.
        below: Of its magnitude, negated.
        one: Of 2^13, which is 1 in Q2.13, from the reciprocal on.
        greatest: Of 2^15 - 1, likewise.
    """

    def __init__(self) -> None:
        self.assembly = Assembly()
        self.line = self.assembly.line
        self.gate = self.assembly.operand("gate", VECTOR, Registers.VECTOR)
        self.below, self.one, self.greatest = self.vector("below"), "", ""
        self.kept = self.assembly.take("predicates", Registers.GENERAL)
        self.line(
            f"vmrs {self.kept}, p0",
            f"vabs.s32 {self.below}, {self.gate}",
            f"vneg.s32 {self.below}, {self.below}",
        )

    def vector(self, name: str) -> str:
        """A vector."""
        return self.assembly.take(name, Registers.VECTOR)

    def number(self, value: int) -> str:
        """A general register with a number of 16 bits, until the next is asked for."""
        register = self.assembly.take("number", Registers.GENERAL)
        self.line(f"movw {register}, #{value % 2**16}")
        self.assembly.free(register)
        return register

    def exponential_near_zero(self, x: str) -> str:
        """The exponential of what is below the last quarter, in Q0.15; `x` is the argument in Q0.15, wrapped."""
        square, fourth = self.vector("square"), self.vector("fourth")
        line = self.line
        line(f"vorr.i16 {x}, #0xe000", f"vadd.i16 {x}, {x}, {self.number(2**12)}")
        line(
            f"vqrdmulh.s16 {square}, {x}, {x}",
            f"vqrdmulh.s16 {fourth}, {square}, {square}",
            f"vrshr.s16 {fourth}, {fourth}, #2",
        )
        cubic = self.vector("cubic")
        line(
            f"vqrdmulh.s16 {cubic}, {square}, {x}",
            f"vadd.i16 {cubic}, {cubic}, {fourth}",
            f"vqrdmulh.s16 {cubic}, {cubic}, {self.number(narrow(ONE_THIRD))}",
            f"vadd.i16 {cubic}, {cubic}, {square}",
            f"vrshr.s16 {cubic}, {cubic}, #1",
            f"vadd.i16 {cubic}, {cubic}, {x}",
        )
        around = self.number(narrow(EXP_MINUS_ONE_EIGHTH))
        line(f"vqrdmulh.s16 {cubic}, {cubic}, {around}", f"vqadd.s16 {cubic}, {cubic}, {around}")
        self.assembly.free(x, square, fourth)
        return cubic

    def decay(self, decay: str, quarters: str, shifts: list[int]) -> None:
        """Multiplies by exp(-2^(k - 2)) where the bit k of the number of quarters is one.

        Args:
            decay: The register.
            quarters: Negative; a bit of the number of quarters is its own, inverted.
            shifts: By which bit k becomes the sign of a lane, for each k.
        """
        sign = self.vector("sign")
        for shift, factor in zip(shifts, EXP_OF_MINUS_POWERS, strict=False):
            by = self.number(narrow(factor))
            self.line(
                f"vshl.i32 {sign}, {quarters}, #{shift}",
                f"vpt.s32 ge, {sign}, zr",
                f"vqrdmulht.s16 {decay}, {decay}, {by}",
            )
        self.assembly.free(sign)

    def reciprocal(self, decay: str) -> str:
        """2 / (1 + decay) in Q2.13."""
        line = self.line
        guess, error = self.vector("guess"), self.vector("error")
        self.one, self.greatest = self.vector("one"), self.vector("greatest")
        first, slope = FORTY_EIGHT_OVER_SEVENTEEN, MINUS_THIRTY_TWO_OVER_SEVENTEEN
        line(f"vmov.i16 {self.one}, #0x2000", f"vmvn.i16 {self.greatest}, #0x8000")
        line(f"vrhadd.s16 {decay}, {decay}, {self.greatest}")
        line(f"vqrdmulh.s16 {guess}, {decay}, {self.number(narrow(slope))}")
        line(f"vadd.i16 {guess}, {guess}, {self.number(narrow(first))}")
        for _ in range(3):
            line(
                f"vqrdmulh.s16 {error}, {decay}, {guess}",
                f"vsub.i16 {error}, {self.one}, {error}",
                f"vqrdmulh.s16 {error}, {error}, {guess}",
                f"vshl.i16 {error}, {error}, #2",
                f"vadd.i16 {guess}, {guess}, {error}",
            )
        self.assembly.free(error)
        return guess

    def text(self, found: str, of_zero: str) -> str:
        """The whole, whose result is in a register; a predicated instruction says what it is of zero."""
        self.line(
            f"vpt.i32 eq, {self.gate}, zr", of_zero, f"vmovlb.s16 {found}, {found}", f"vmsr p0, {self.kept}"
        )
        self.assembly.result("return ", VECTOR, found)
        return self.assembly.text()
