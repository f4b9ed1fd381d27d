"""Boards that QEMU emulates: their facts, the linker script, and the bare-metal sources round a bundle."""
