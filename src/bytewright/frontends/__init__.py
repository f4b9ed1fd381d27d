"""Model files to graphs; the only place that knows file formats."""
