"""The integer arithmetic of TFLite's operators, per numerics set, as it was measured.

`prepare` functions turn quantisation parameters into integers, which the IR carries and the generated C uses; the
operators of `bytewright.ops` apply them with numpy. Nothing here depends on the machine: scalars
are IEEE double or single precision (`multiplier`), tables come from correctly rounded functions (`exact`), and
everything else is integer. `docs/numerics.md` has the table of formulas and how each was measured.

Import order of the modules: numerics < multiplier < rescale < fit, factors, fixedpoint, sums < softmax, tables <
interpolation. `exact` imports none of them.
"""
