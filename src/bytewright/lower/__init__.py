"""Graph to PrimFuncs: operators are fused into kernels."""
