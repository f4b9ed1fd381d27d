"""The search for a way out when a model or options do not fit: what to change, tried before it is said."""
