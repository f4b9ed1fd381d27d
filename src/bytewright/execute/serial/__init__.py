"""Runs a bundle on a board behind a serial line: the program that the board has, and the host's side of the line."""
