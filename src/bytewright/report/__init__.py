"""Plans as text and JSON."""
