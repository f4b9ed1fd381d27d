"""What fields say of their numbers, where a plain `int` means a natural one, as sizes, offsets and counts are."""

from typing import Annotated

Signed = Annotated[int, "signed"]
"""A whole number that may be negative."""
