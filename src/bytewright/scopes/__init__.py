"""Scopes of kernels and their buffers, and the pools that each buffer may go to."""
