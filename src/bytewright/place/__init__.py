"""Every value of the graph gets a virtual device."""
