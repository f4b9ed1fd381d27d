"""Warnings that generated C may earn where random programs are compared: what they ask for makes no sense."""

# Random conditions need not make sense: `x == x`, or a truth value that is less than 5.
SENSELESS = (
    "-Wno-unknown-warning-option",
    "-Wno-tautological-compare",
    "-Wno-tautological-constant-out-of-range-compare",
    "-Wno-bool-compare",
    "-Wno-type-limits",
    "-Wno-sign-compare",  # of gcc, where `-1 - x` is compared with `y` and both are u8: it is always less
)
