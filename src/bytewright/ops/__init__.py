"""What operators mean: their types and numpy references. The table of all of them is `registry.OPERATIONS`."""
