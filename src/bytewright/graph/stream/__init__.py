"""A network over time becomes one that takes a frame, and keeps between runs what its windows need."""
