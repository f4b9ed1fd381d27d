"""Builds and runs bundles on the host and on emulated boards."""
