"""What BW104 advises about operators that are not supported; each advice is followed in tests/run/test_advice.py."""

_UNROLL = "build the layer with unroll=True and a fixed number of steps, so that it becomes layers that are supported"
_AFTER = "leave it out of the model, and compute it in the application"
_SOURCE = "a compiler for an accelerator wrote it; compile the file that this compiler was given"

# Operators to what can be done about them, where something can be done without another network.
ADVICE: dict[str, str] = {
    "UNIDIRECTIONAL_SEQUENCE_RNN": _UNROLL,
    "BIDIRECTIONAL_SEQUENCE_RNN": _UNROLL,
    "LSTM": _UNROLL,
    "RNN": _UNROLL,
}

# How the names of customs begin, to what can be done about them.
CUSTOM_ADVICE: dict[str, str] = {
    "Flex": _AFTER,
    "edgetpu-custom-op": _SOURCE,
    "DISPATCH_OP": _SOURCE,
    "NeutronGraph": _SOURCE,
    "XC_": _SOURCE,
}


def advice_about(kind: str) -> str | None:
    """What can be done about an operator that is not supported."""
    customs = (text for name, text in CUSTOM_ADVICE.items() if kind.startswith(f"CUSTOM '{name}"))
    return ADVICE.get(kind) or next(customs, None)
