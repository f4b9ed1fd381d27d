"""Every form of an operator once: see `all_forms`."""
