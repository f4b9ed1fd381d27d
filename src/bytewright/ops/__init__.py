"""Operators: shape and type rules, and a numpy reference for each."""
