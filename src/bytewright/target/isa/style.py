"""The shape of portable kernels, which an instruction set chooses.

These are measured facts (docs/kernels.md): on x86 sixteen output channels at a time and unsigned activations let
compilers use the widest dot products; scalar Arm cores have registers for eight.
"""

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class KernelStyle:
    """Choices that change the speed of kernels and never their results.

    Attributes:
        channel_block: Output channels that are accumulated together.
        unsigned_activations: Add 128 to int8 activations and multiply as u8 x i8; the bias makes up for it.
        paired_taps: Sum two 8-bit products in 16 bits first, where the weights allow it.
        few_channels_by_lanes: Accumulate eight channels side by side where there are no more than these.
        float_lanes: Output channels of a float32 convolution that are accumulated side by side.
        channel_multiples: What widths of tensors are multiples of where constant channels are removed: the first that
            takes at most a quarter of itself of channels more, or else the last.
        float_rescale: Rescale accumulators in float32 where that is proved exact: for cores that multiply and add
            vectors of floats at once.
        has_doubles: Scale in double precision where the reference does, and not in integers that are proved equal.
        max_patch_bytes: The largest patch of the input that a kernel gathers into a local array.
        recomputed: Products of bytes that layers may form again in every run so that less is kept between two, over
            those that they form anyway: on cores that have little memory, and add many products at once.
    """

    channel_block: int
    unsigned_activations: bool
    paired_taps: bool
    few_channels_by_lanes: bool
    float_lanes: int
    channel_multiples: tuple[int, ...]
    float_rescale: bool = False
    has_doubles: bool = True
    max_patch_bytes: int = 64
    recomputed: float = 0.0

    def width_for(self, num_channels: int) -> int:
        """The width of a tensor that needs this many channels."""
        for multiple in self.channel_multiples[:-1]:
            width = -(-num_channels // multiple) * multiple
            if width - num_channels <= multiple // 4:
                return width
        return -(-num_channels // self.channel_multiples[-1]) * self.channel_multiples[-1]


VECTOR = KernelStyle(
    channel_block=16,
    unsigned_activations=True,
    paired_taps=True,
    few_channels_by_lanes=True,
    float_lanes=64,
    channel_multiples=(16, 2),
)
# Where compilers know a dot product of i8 by i8 and no such of u8 by i8.
SIGNED_VECTOR = replace(VECTOR, unsigned_activations=False, paired_taps=False)
SCALAR = KernelStyle(
    channel_block=8,
    unsigned_activations=False,
    paired_taps=False,
    few_channels_by_lanes=False,
    float_lanes=16,
    channel_multiples=(1,),
    has_doubles=False,
)
# The same kernels on cores whose instructions take four channels at once, or sixteen.
SCALAR_WITH_DSP = replace(SCALAR, channel_multiples=(4,))
SCALAR_WITH_MVE = replace(SCALAR, channel_multiples=(16, 2), has_doubles=True, recomputed=2.0)
