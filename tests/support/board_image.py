"""Images for the mps3-an547, which lie beside a bundle, where `check` asks for nothing; linked again with a change."""

from __future__ import annotations

import subprocess
from pathlib import Path

from bytewright.execute.boards.facts import BOARDS
from bytewright.execute.boards.image import build_image
from bytewright.execute.boards.placement import place_on_board
from bytewright.execute.build import BuildOptions, include_flags
from bytewright.execute.description import read_bundle

BOARD = BOARDS["mps3-an547"]


def image_of(bundle_folder: Path) -> Path:
    """The ELF file of a bundle, built if it is not there."""
    folder = bundle_folder.parent / f"{bundle_folder.name}-image"
    if not folder.is_dir():
        folder.mkdir()
        bundle = read_bundle(bundle_folder)
        build_image(bundle, place_on_board(bundle.plan), folder, BuildOptions(("-O1",)))
    return folder / "image.elf"


def link_again(bundle_folder: Path, product: Path, *flags: str, old: str = "", new: str = "") -> Path:
    """Links the objects of the image again, with a change in the linker script."""
    folder = image_of(bundle_folder).parent
    script = (folder / "board.ld").read_text(encoding="utf-8")
    assert old in script
    changed = product.with_suffix(".ld")
    changed.write_text(script.replace(old, new), encoding="utf-8")
    objects = sorted(path.name for path in folder.glob("bundle_*.o"))
    subprocess.run(
        [
            "arm-none-eabi-gcc",
            *BOARD.isa.flags,
            *("-std=c99", "-O2"),  # as the image was linked: the order of variables depends on it
            *include_flags(read_bundle(bundle_folder), folder),
            *("-nostartfiles", "-Wl,--no-warn-rwx-segments", "-T", str(changed), *flags),
            *("startup.S.o", "adapter.c", "main.c", "port_board.c", *objects, "-lm", "-o", str(product)),
        ],
        cwd=folder,
        check=True,
        timeout=120,
    )
    return product
