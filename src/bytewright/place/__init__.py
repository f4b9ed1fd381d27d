"""Where devices and memories let the values of a graph be: a virtual device for each, copies where they must."""
