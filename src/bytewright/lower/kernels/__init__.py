"""Templates of kernels: each writes the PrimFunc of one anchor operator, its epilogue included."""
