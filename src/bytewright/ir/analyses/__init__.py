"""What passes know of a module without changing it: ranges, the clock, touch, stack, traffic."""
