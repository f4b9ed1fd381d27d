"""Builds and runs bundles: bundle -> output, on the host and on emulated boards.

`run.py` is the entry. `description.py` reads a bundle, `host.py` runs it on this machine, `qemu.py` on a
board that QEMU emulates; `harness/` and `boards/` hold the C and assembly sources that go round a bundle. `profile/`
says what each step of a run costs.
"""
