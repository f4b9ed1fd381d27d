"""Kernels for instruction sets: one folder for each, with its instructions and the templates that use them.

A folder's `__init__` names an `InstructionSet`; `registry.py` lists them, best first. Nothing else in the compiler
knows what they have: an instruction is a record, and what it means is statements as every other part reads them.
"""
