"""The TFLite frontend: bytes of a .tflite file become a graph."""

from bytewright.frontends.tflite.importer import import_content, import_tflite
from bytewright.frontends.tflite.table import SUPPORTED, SupportedOperator

__all__ = ["SUPPORTED", "SupportedOperator", "import_content", "import_tflite"]
