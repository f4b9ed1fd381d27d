"""The text of modules: notation, printers and parsers, the graph and the PrimFuncs."""
