"""Planned PrimFuncs to C text."""
