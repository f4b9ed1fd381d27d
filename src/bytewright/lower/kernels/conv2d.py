"""conv2d: chooses among the shapes of kernel by what was measured (docs/kernels.md)."""

from bytewright.lower.kernels.context import Template
from bytewright.lower.kernels.conv2d_dot import write_dot, write_groups
from bytewright.lower.kernels.conv2d_lanes import write_lanes
from bytewright.lower.kernels.conv2d_patch import write_patch
from bytewright.lower.kernels.convolution import Convolution, convolution_of
from bytewright.ops.convolution import Conv2d, GroupedConv2d

FEW_INPUT_CHANNELS = 16
FEW_LANES = 8


def lower_conv2d(template: Template, operation: Conv2d) -> None:
    """Writes the kernel of a conv2d.

    x: [N, H, W, IC]; weights: [OC, KH, KW, IC]; bias: [OC]; result: [N, OH, OW, OC].
    """
    convolution = convolution_of(template, operation)
    if not convolution.dtype.is_integer or _is_narrow(convolution):
        write_lanes(convolution)
    elif _is_small_patch(convolution):
        write_patch(convolution)
    else:
        write_dot(convolution)


def lower_grouped_conv2d(template: Template, operation: GroupedConv2d) -> None:
    """Writes the kernel of a grouped_conv2d.

    x: [N, H, W, G * IC]; weights: [OC, KH, KW, IC]; bias: [OC]; result: [N, OH, OW, OC].
    """
    convolution = convolution_of(template, operation)
    write = write_groups if convolution.dtype.is_integer else write_lanes
    write(convolution)


def _is_narrow(convolution: Convolution) -> bool:
    return (
        convolution.template.style.few_channels_by_lanes
        and convolution.window.num_taps > 1
        and convolution.window.columns.dilation == 1
        and convolution.out_channels == FEW_LANES
        and convolution.in_channels < FEW_INPUT_CHANNELS
    )


def _is_small_patch(convolution: Convolution) -> bool:
    patch_bytes = convolution.window.num_taps * convolution.in_channels * convolution.dtype.size_bytes
    return (
        convolution.window.num_taps > 1
        and convolution.in_channels < FEW_INPUT_CHANNELS
        and patch_bytes <= convolution.template.style.max_patch_bytes
    )
