"""Shows on samples that a bundle computes what its reference does, and holds what its model does.

`samples.py` reads samples, `references.py` has the references, `agreement.py` counts differences, `layers.py` finds the
first tensor that differs, `parameters.py` compares the pools with the model; `validate.py` is the entry.
"""
