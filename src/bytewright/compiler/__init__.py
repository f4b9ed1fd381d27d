"""A compile: its stages in order, what came of storing a model, and the search for a way out."""
