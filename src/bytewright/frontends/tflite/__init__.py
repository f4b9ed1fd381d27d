"""The TFLite frontend."""
