"""Chains of kernels that run row by row, and keep of the tensors between them only the rows that are still needed."""
