"""The ways in which a payload or a stream is refused, each with its code.

BW740: it is damaged; BW741: an action of its is not known; BW742: it uses what is not understood exactly; BW743: its
accesses leave what it was given.
"""

from bytewright.diagnostics import CompileError, compile_error

_AGAIN = "compile the model again with ethos-u-vela 5.2.0 and pass the file as Vela wrote it"


def damaged(message: str) -> CompileError:
    """BW740: bytes that no compiler writes."""
    return compile_error("BW740", message, help=_AGAIN)


def unknown_action(message: str) -> CompileError:
    """BW741: a driver action that is neither the configuration nor the stream nor padding."""
    return compile_error("BW741", message, help=_AGAIN)


def unsupported(message: str) -> CompileError:
    """BW742: something that the NPU may do, but that is not known exactly here."""
    help_text = (
        "keep the operator on the CPU (Vela: --ignore-ops with its TFLite name) and compile the model again"
    )
    return compile_error("BW742", message, help=help_text)


def another_npu(message: str) -> CompileError:
    """BW742: a stream for hardware that is not known here."""
    help_text = "compile the model again with Vela for one of these (--accelerator-config)"
    return compile_error("BW742", message, help=help_text)


def out_of_reach(message: str) -> CompileError:
    """BW743: an access outside of the tensors."""
    return compile_error("BW743", message, help=_AGAIN)
