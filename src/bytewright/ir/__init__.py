"""The two intermediate representations: graph and PrimFunc."""
