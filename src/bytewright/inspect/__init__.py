"""Verdicts on bundles: re-validation and checks."""
