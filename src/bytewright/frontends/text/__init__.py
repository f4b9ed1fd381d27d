"""The frontend of IR text: modules that were written by hand, or printed by `compile --print-after`."""

from bytewright.frontends.text.import_text import SUFFIX, import_text

__all__ = ["SUFFIX", "import_text"]
