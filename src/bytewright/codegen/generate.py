"""All C files of a bundle, by path."""

from __future__ import annotations

from bytewright.codegen.arena import backend_source
from bytewright.codegen.check_names import check_names
from bytewright.codegen.entry import entry_source
from bytewright.codegen.externals import externals, externals_header, externals_header_name
from bytewright.codegen.header import header_text
from bytewright.codegen.interface import Interface
from bytewright.codegen.kernels import kernels_header, kernels_source
from bytewright.codegen.parameters import embedded_files, parameters_source
from bytewright.ir.module import Module


def generate_c(module: Module, interface: Interface) -> dict[str, bytes]:
    """Path in the bundle -> content. The module must be planned."""
    check_names(module, interface)
    model = module.name
    texts = {
        f"include/{model}.h": header_text(module, interface),
        f"src/{model}.c": entry_source(module, interface),
        f"src/{model}_kernels.h": kernels_header(module),
        f"src/{model}_kernels.c": kernels_source(module),
        f"src/{model}_parameters.c": parameters_source(interface),
    }
    if externals(module):
        texts[f"include/{externals_header_name(model)}"] = externals_header(module, interface)
    if interface.arenas:
        texts[f"src/{model}_backend.c"] = backend_source(interface)
    return {path: text.encode() for path, text in texts.items()} | embedded_files(interface)
