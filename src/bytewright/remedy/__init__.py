"""The search for a way out when a model does not fit: what to change, tried before it is said."""
