"""Open extents through operators where rows meet: results equal LiteRT's, resized to every extent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import bytewright
from support.reference import LiteRt
from tflite_writer import ModelBuilder

pytestmark = pytest.mark.run

Array = NDArray[Any]
ROWS, MOST = 12, 21
AFFINE: dict[str, Any] = {"scale": 0.5, "zero_point": 3}


class Net(ModelBuilder):
    """A network over time [1, ROWS, 6], built from its input on; the last value is `last`, as are its extents."""

    def __init__(self, dtype: str = "int8", channels: int = 6) -> None:
        super().__init__()
        self.rng = np.random.default_rng(7)
        self.dtype = dtype
        self.affine = AFFINE if dtype == "int8" else {}
        self.num_values = 0
        self.shape: tuple[int, ...] = (1, ROWS, channels)
        self.source = self.last = self.value(self.shape)

    def name(self) -> str:
        self.num_values += 1
        return f"v{self.num_values}"

    def value(self, shape: tuple[int, ...], **affine: Any) -> int:
        return self.tensor(self.name(), shape, self.dtype, **(affine or self.affine))

    def put(self, kind: str, inputs: list[int], shape: tuple[int, ...], **options: Any) -> Net:
        affine = options.pop("affine", {})
        result = self.value(shape, **affine)
        self.operator(kind, inputs, [result], **options)
        self.last, self.shape = result, shape
        return self

    def integers(self, *values: Any) -> int:
        return self.constant(self.name(), np.array(values, np.int32))

    def reshape(self, *shape: int) -> Net:
        size = int(np.prod(self.shape))
        known = int(np.prod([extent for extent in shape if extent > 0]))
        whole = tuple(size // known if extent < 0 else extent for extent in shape)
        return self.put("RESHAPE", [self.last, self.integers(*shape)], whole, new_shape=shape)

    def image(self) -> Net:
        """As exporters write 1-D convolutions: one row, of columns over time."""
        return self.reshape(1, 1, -1, self.shape[-1])

    def upright(self) -> Net:
        return self.reshape(1, -1, 1, self.shape[-1])

    def weights(self, shape: tuple[int, ...], count: int) -> list[int]:
        values = self.rng.integers(-127, 128, shape)
        bias = self.rng.integers(-40, 40, count)
        if self.dtype == "float32":
            return [
                self.constant(self.name(), (values / 64).astype(np.float32)),
                self.constant(self.name(), bias.astype(np.float32)),
            ]
        w = self.constant(self.name(), values.astype(np.int8), scale=0.01)
        return [w, self.tensor(self.name(), (count,), "int32", data=bias.astype(np.int32), scale=0.005)]

    def _windowed(
        self, kind: str, inputs: list[int], count: int, size: tuple[int, int], **options: Any
    ) -> Net:
        steps = options.get("stride_h", 1), options.get("stride_w", 1)
        spread = options.get("dilation_h_factor", 1), options.get("dilation_w_factor", 1)
        extents: list[int] = []
        for extent, each, step, apart in zip(self.shape[1:3], size, steps, spread, strict=True):
            reach = (each - 1) * apart + 1
            is_same = options.get("padding", "SAME") == "SAME"
            extents.append(-(-extent // step) if is_same else (extent - reach) // step + 1)
        return self.put(kind, inputs, (1, *extents, count), **options)

    def conv(self, count: int, size: tuple[int, int], **options: Any) -> Net:
        parameters = self.weights((count, *size, self.shape[-1]), count)
        return self._windowed("CONV_2D", [self.last, *parameters], count, size, **options)

    def depthwise(self, size: tuple[int, int], **options: Any) -> Net:
        count = self.shape[-1]
        parameters = self.weights((1, *size, count), count)
        return self._windowed(
            "DEPTHWISE_CONV_2D", [self.last, *parameters], count, size, depth_multiplier=1, **options
        )

    def pool(self, kind: str, size: tuple[int, int], **options: Any) -> Net:
        options = {"filter_height": size[0], "filter_width": size[1], "padding": "SAME", **options}
        return self._windowed(kind, [self.last], self.shape[-1], size, **options)

    def pad(self, *widths: tuple[int, int]) -> Net:
        shape = tuple(extent + sum(own) for extent, own in zip(self.shape, widths, strict=True))
        table = self.constant(self.name(), np.array(widths, np.int32))
        return self.put("PAD", [self.last, table], shape)

    def content(self) -> bytes:
        return self.build([self.source], [self.last])


def check(
    tmp_path: Path, content: bytes, lower: int = 1, upper: int = MOST, axis: int = 1, **options: Any
) -> bytewright.CompiledModel:
    """Compares every extent with LiteRT; returns the model."""
    file = tmp_path / "m.tflite"
    file.write_bytes(content)
    model = bytewright.compile(file, open=f"{axis}=time:{lower}..{upper}", **options)
    reference, rng = LiteRt(content), np.random.default_rng(5)
    (given,) = model.plan.inputs
    for extent in range(lower, upper + 1):
        shape = (*given.shape[:axis], extent, *given.shape[axis + 1 :])
        x = rng.integers(-128, 128, shape).astype(given.dtype.numpy)
        (wanted,) = reference.run(x)
        found = np.asarray(model.run(x))
        assert found.shape == wanted.shape, extent
        if wanted.dtype == np.float32:
            assert np.abs(found - wanted).max() <= 1e-5 * max(np.abs(wanted).max(), 1e-30), extent
        else:
            assert (found == wanted).all(), extent
    return model


_VALID: dict[str, Any] = {"padding": "VALID"}
NETS: dict[str, tuple[Callable[[str], Net], int]] = {
    "same": (lambda d: Net(d).image().conv(8, (1, 3)), 1),
    "same-even": (lambda d: Net(d).image().conv(8, (1, 4)), 1),
    "valid": (lambda d: Net(d).image().conv(8, (1, 3), **_VALID), 3),
    "valid-stride": (lambda d: Net(d).image().conv(8, (1, 4), stride_w=3, **_VALID), 4),
    "dilated": (lambda d: Net(d).image().conv(8, (1, 3), dilation_w_factor=2), 1),
    "dilated-valid": (lambda d: Net(d).image().conv(8, (1, 3), dilation_w_factor=2, **_VALID), 5),
    "causal": (lambda d: Net(d).pad((0, 0), (2, 0), (0, 0)).image().conv(8, (1, 3), **_VALID), 1),
    "padded-behind": (lambda d: Net(d).pad((0, 0), (1, 3), (0, 0)).image().conv(8, (1, 3), **_VALID), 1),
    "padded": (lambda d: Net(d).pad((0, 0), (1, 3), (1, 0)), 1),
    "depthwise": (lambda d: Net(d).image().depthwise((1, 3)), 1),
    "depthwise-dilated": (lambda d: Net(d).image().depthwise((1, 3), dilation_w_factor=2), 1),
    "max-pool": (lambda d: Net(d).image().pool("MAX_POOL_2D", (1, 3)), 1),
    "average-pool": (lambda d: Net(d).image().pool("AVERAGE_POOL_2D", (1, 3)), 1),
    "pool-valid": (lambda d: Net(d).image().pool("MAX_POOL_2D", (1, 2), stride_w=2, **_VALID), 2),
    "upright": (lambda d: Net(d).upright().conv(8, (3, 1)), 1),
    "wide": (lambda d: Net(d).reshape(1, -1, 3, 2).conv(8, (3, 3)), 1),
    "wide-depthwise": (lambda d: Net(d).reshape(1, -1, 3, 2).depthwise((5, 2)), 1),
    "wide-pool": (lambda d: Net(d).reshape(1, -1, 3, 2).pool("AVERAGE_POOL_2D", (3, 2)), 1),
    "deep": (
        lambda d: (
            Net(d)
            .image()
            .conv(8, (1, 5), activation="RELU")
            .depthwise((1, 3))
            .conv(8, (1, 4), stride_w=2, **_VALID)
            .pool("MAX_POOL_2D", (1, 2), stride_w=2, **_VALID)
            .conv(16, (1, 1))
            .reshape(1, -1, 16)
        ),
        6,
    ),
}


@pytest.mark.parametrize("dtype", ["int8", "float32"])
@pytest.mark.parametrize("name", NETS)
def test_every_extent_is_exact(tmp_path: Path, name: str, dtype: str) -> None:
    net, lower = NETS[name]
    check(tmp_path, net(dtype).content(), lower)
