"""The TFLite frontend: bytes of a .tflite file become a graph."""

from bytewright.frontends.tflite.importer import import_content, import_tflite

__all__ = ["import_content", "import_tflite"]
