"""What can be done about operators that are not supported, where something can be done without another network."""

from __future__ import annotations

CONTROL_FLOW = ("IF", "WHILE", "CALL", "CALL_ONCE")

_UNROLL = "build the layer with unroll=True and a fixed number of steps, so that it becomes layers that are supported"
_FIXED = "convert the model with fixed input shapes, so that the shape is known and folded"
_BRANCH = "take the branch that is needed out of the model, and decide in the application"
_AFTER = "leave it out of the model, and compute it in the application"

ADVICE: dict[str, str] = {
    "UNIDIRECTIONAL_SEQUENCE_LSTM": _UNROLL,
    "BIDIRECTIONAL_SEQUENCE_LSTM": _UNROLL,
    "UNIDIRECTIONAL_SEQUENCE_RNN": _UNROLL,
    "BIDIRECTIONAL_SEQUENCE_RNN": _UNROLL,
    "LSTM": _UNROLL,
    "RNN": _UNROLL,
    "SVDF": "write it as a convolution over time, whose frames are the model's input",
    "WHILE": "unroll the loop before the model is converted",
    "IF": _BRANCH,
    "SHAPE": _FIXED,
    "RANK": _FIXED,
    "RANGE": _FIXED,
    "ARG_MAX": _AFTER,
    "ARG_MIN": _AFTER,
    "TOPK_V2": _AFTER,
    "NON_MAX_SUPPRESSION_V4": _AFTER,
    "NON_MAX_SUPPRESSION_V5": _AFTER,
    "PACK": "replace it by EXPAND_DIMS of each operand and CONCATENATION",
    "UNPACK": "replace it by SPLIT and SQUEEZE",
    "SPLIT_V": "replace it by SLICE for each part",
    "SUM": "replace it by MEAN, and MUL by the number of values",
    "SQUARE": "replace it by MUL of the value with itself",
    "SQUARED_DIFFERENCE": "replace it by SUB, and MUL of the result with itself",
    "NEG": "replace it by MUL with -1",
    "DIV": "replace a division by a constant by MUL with its reciprocal",
    "PRELU": "replace it by LEAKY_RELU, if all slopes are one",
    "REDUCE_MAX": "replace a maximum over height and width by MAX_POOL_2D",
    "FAKE_QUANT": "convert the model with a representative data set, or without quantisation",
    "CAST": "let the model's inputs and outputs have the types that it computes with",
}
