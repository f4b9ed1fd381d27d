"""Bytewright: neural networks to plain C99, with a proved home for every byte."""

__version__ = "0.1.0"
