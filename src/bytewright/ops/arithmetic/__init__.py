"""The integer arithmetic of TFLite's operators, per numerics set, as it was measured.

`prepare` functions turn quantisation parameters into a frozen dataclass of integers, which the IR carries and
the generated C uses; `reference` functions apply it with numpy. Nothing here depends on the machine: scalars
are IEEE double or single precision (`multiplier`), tables come from correctly rounded functions (`exact`), and
everything else is integer. `docs/numerics.md` has the table of formulas and how each was measured.

Import order of the modules: numerics < multiplier < rescale < fit, elementwise, pooling, fixedpoint < softmax,
tables. `exact` imports none of them; `float32` is beside them.
"""
