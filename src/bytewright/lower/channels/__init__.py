"""Channels, which are elements of the last axis: which are one, are constant, can go, and a graph without them."""
