"""Programs carried out, for tests: what the C must compute."""
