"""Calls of the C functions of the application that compute operators."""
