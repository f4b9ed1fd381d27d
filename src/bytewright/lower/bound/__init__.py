"""Operators that C functions of the application compute: what the user says of them, and the calls."""
