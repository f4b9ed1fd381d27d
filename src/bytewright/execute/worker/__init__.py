"""Devices besides the entry's in a run on the host: each is a process that has the memory it is lent, and no more."""
