"""What BW104 advises about operators that are not supported; each advice is followed in tests/run/test_advice.py."""

_UNROLL = "build the layer with unroll=True and a fixed number of steps, so that it becomes layers that are supported"

# Operators to what can be done about them, where something can be done without another network.
ADVICE: dict[str, str] = {
    "UNIDIRECTIONAL_SEQUENCE_RNN": _UNROLL,
    "BIDIRECTIONAL_SEQUENCE_RNN": _UNROLL,
    "LSTM": _UNROLL,
    "RNN": _UNROLL,
}
