"""Operators that functions of the application compute: which, and what describes the functions."""
