"""Samples of the user: arrays of .npy and .npz files or a folder, cut into the inputs of single inferences.

Nothing is resized, cropped, or normalised: size and type must fit. The one exception is said in a remark: floats for an
integer input are quantised by the model's own scale.
"""

from __future__ import annotations

import importlib
import io
import re
import wave
import zipfile
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from bytewright.base.input_file import read_input
from bytewright.diagnostics import CompileError, compile_error
from bytewright.execute.by_name import in_order
from bytewright.execute.tensors import Array, array_from_npy, check_num_inputs, native
from bytewright.ops.arithmetic.tables import quantize_float
from bytewright.record.entries import PlannedTensor
from bytewright.record.plan import Plan

SAMPLE_FILES = (".npy", ".png", ".wav")
_PNG_MAGIC = b"\x89PNG\r\n\x1a\n"


@dataclass(frozen=True, slots=True, eq=False)
class _Stored:
    """What files hold.

    Attributes:
        array: Their numbers.
        rate: Of recordings, frames a second.
        mixed_up: Two files of a folder whose order by name is not that by number.
    """

    array: Array
    rate: int | None = None
    mixed_up: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """The inputs of inferences.

    Attributes:
        batch: Of each inference the inputs, in the model's order.
        num_given: How many there are, taken or not.
        labels: The class of each, if they are known.
        remarks: What was done to the data, a sentence each.
    """

    batch: tuple[tuple[Array, ...], ...]
    num_given: int
    labels: Array | None = None
    remarks: tuple[str, ...] = ()


def read_samples(
    plan: Plan,
    data: Sequence[tuple[str | None, Path]],
    labels: str | None = None,
    limit: int | None = None,
    *,
    is_paired: bool = False,
) -> Samples:
    """The samples of files.

    Args:
        plan: What they are for.
        data: A .npz file with an array for each input, or for each input a .npy file or a folder with a file for each
            sample, in the order of their names. Each with the input's name, or in the model's order.
        labels: An array of the .npz file, or a .npy file.
        limit: How many to take at most, from the first on.
        is_paired: Whether something else than labels has their order, too: outputs of a file.

    Raises:
        CompileError: BW205 for what cannot be read or does not match; BW501 for a package that is missing.
    """
    archives = [path for _, path in data if path.suffix.lower() == ".npz"]
    inside: Mapping[str, Array] = {}
    remarks: list[str] = []
    if archives and len(data) == 1:
        inside = _Archive(archives[0])
        given = _inputs_inside(plan, inside, labels, archives[0])
    elif archives:
        raise compile_error("BW205", f"'{archives[0]}' holds all inputs: give it alone")
    else:
        stored = [(name, path, _stored_at(path)) for name, path in data]
        for _, path, found in stored:
            if labels is not None or is_paired:
                _require_one_order(path, found)
            remarks += [] if found.rate is None else [f"'{path}': {found.rate} frames a second, as recorded"]
        given = [(name, found.array) for name, _, found in stored]
    names = [tensor.name for tensor in plan.inputs]
    classes = None if labels is None else inside[labels] if labels in inside else _read(Path(labels)).array
    samples = samples_of(plan, in_order(names, given, "input"), classes, limit)
    return replace(samples, remarks=(*samples.remarks, *remarks))


def read_outputs(plan: Plan, path: Path) -> list[Array]:
    """The outputs of samples in a file, in the model's order: a .npy file of one output, or a .npz file by names.

    Raises:
        CompileError: BW205.
    """
    names = [tensor.name for tensor in plan.outputs]
    if path.suffix.lower() != ".npz":
        if len(names) != 1:
            raise compile_error(
                "BW205",
                f"model '{plan.model}' has {len(names)} outputs: give them in a .npz file",
                notes=(f"by the names {', '.join(map(repr, names))}",),
            )
        return [_read(path).array]
    arrays = _Archive(path)
    missing = [name for name in names if name not in arrays]
    if missing:
        raise compile_error("BW205", f"'{path}' has no array '{missing[0]}'")
    return [arrays[name] for name in names]


def samples_of(
    plan: Plan, arrays: Sequence[Array], labels: Array | None = None, limit: int | None = None
) -> Samples:
    """The samples of arrays, one for each input of the model, whose first axis counts samples.

    Where an input has a batch axis of 1, that may be missing from its array, and where there is one sample, the first
    axis may be missing, too.

    Raises:
        CompileError: BW205: shapes, types, or numbers of samples or labels do not match.
    """
    check_num_inputs(plan, len(arrays))
    cut: list[Array] = []
    remarks: list[str] = []
    for tensor, array in zip(plan.inputs, arrays, strict=True):
        own, remark = _of_type(tensor, _cut(tensor, native(np.asarray(array))))
        cut.append(own)
        remarks += remark
    counts = {len(array) for array in cut}
    if len(counts) > 1:
        texts = (f"{len(a)} of '{t.name}'" for t, a in zip(plan.inputs, cut, strict=True))
        raise compile_error("BW205", f"the inputs have different numbers of samples: {', '.join(texts)}")
    (num_samples,) = counts or {0}
    if not num_samples:
        raise compile_error("BW205", "there are no samples")
    classes = None if labels is None else _labels(plan, np.asarray(labels), num_samples)
    num_taken = num_samples if limit is None else min(limit, num_samples)
    batch = tuple(tuple(array[index] for array in cut) for index in range(num_taken))
    return Samples(batch, num_samples, None if classes is None else classes[:num_taken], tuple(remarks))


def _sample_shape(tensor: PlannedTensor) -> tuple[int, ...]:
    """The shape of an input in an inference of one sample."""
    first = tensor.extents[:1]
    return (1, *tensor.shape[1:]) if first and isinstance(first[0], str) else tensor.shape


def _cut(tensor: PlannedTensor, array: Array) -> Array:
    """The array with samples along its first axis, each of the input's shape."""
    shape = _sample_shape(tensor)
    if array.ndim == len(shape) + 1 and array.shape[1:] == shape:
        return array
    if shape[:1] == (1,) and array.ndim == len(shape) and array.shape[1:] == shape[1:]:
        return array[:, np.newaxis]
    if array.shape == shape:
        return array[np.newaxis]
    if shape[:1] == (1,) and array.shape == shape[1:]:
        return array[np.newaxis, np.newaxis]
    extents = ", ".join(map(str, shape))
    raise compile_error(
        "BW205",
        f"a sample of input '{tensor.name}' is [{extents}], the array is {array.dtype}{list(array.shape)}",
        help="give an array whose first axis counts samples; samples are not resized",
    )


def _of_type(tensor: PlannedTensor, array: Array) -> tuple[Array, list[str]]:
    """The samples in the input's type, and what was done for that."""
    wanted = tensor.dtype.numpy
    if array.dtype == wanted:
        return array, []
    if array.dtype.kind == "f" and wanted.kind == "f":
        rounded = _rounded(tensor, array, wanted)
        return rounded, [f"input '{tensor.name}': {array.dtype} rounded to {wanted}"]
    if array.dtype.kind == "f" and wanted.kind in "iu" and tensor.scale is not None:
        zero_point, limits = tensor.zero_point or 0, np.iinfo(str(wanted))
        if not np.isfinite(array).all():
            raise compile_error("BW205", f"input '{tensor.name}': samples hold infinities or NaN")
        values = _rounded(tensor, array, np.dtype(np.float32))
        steps = quantize_float(values, tensor.scale, zero_point, (int(limits.min), int(limits.max)))
        text = f"input '{tensor.name}': floats quantised, round(x / {tensor.scale:.9g}) + {zero_point} as {wanted}"
        return steps.astype(wanted), [text]
    raise compile_error(
        "BW205",
        f"input '{tensor.name}' must be {wanted}, the samples are {array.dtype}",
        help=f"give {wanted}, or the real values as floats, which the model's scale quantises"
        if tensor.scale is not None
        else f"give {wanted}",
    )


def _rounded(tensor: PlannedTensor, array: Array, dtype: np.dtype[Any]) -> Array:
    """The samples as floats of another type, in which none becomes infinite.

    Raises:
        CompileError: BW205: one would.
    """
    with np.errstate(over="ignore"):
        rounded = array.astype(dtype)
    if (np.isinf(rounded) & np.isfinite(array)).any():
        worst = np.abs(array[np.isfinite(array)]).max()
        raise compile_error(
            "BW205", f"input '{tensor.name}': samples hold {worst:.4g}, which no {dtype} can be"
        )
    return rounded


def num_classes(plan: Plan) -> int:
    """How many answers the first output chooses from; 1 if it is no choice."""
    shape = plan.outputs[0].shape
    return shape[-1] if shape else 1


def _labels(plan: Plan, labels: Array, num_samples: int) -> Array:
    if labels.dtype.kind not in "iu" or labels.shape not in ((num_samples,), (num_samples, 1)):
        given = f"{labels.dtype}{list(labels.shape)}"
        raise compile_error(
            "BW205",
            f"labels must be integers, one for each of {num_samples} samples, not {given}",
            help=f"give an array of the shape [{num_samples}] and an integer type; --samples N counts from the first",
        )
    least, most, end = int(labels.min()), int(labels.max()), num_classes(plan)
    if least < 0 or most >= end:
        name = plan.outputs[0].name
        raise compile_error(
            "BW205",
            f"labels are {least} to {most}, output '{name}' has the classes 0 to {end - 1}",
            help=f"a label is a place in output '{name}', from 0",
        )
    return labels.reshape(num_samples)


def _inputs_inside(
    plan: Plan, arrays: Mapping[str, Array], labels: str | None, path: Path
) -> list[tuple[str | None, Array]]:
    """The arrays of an archive that are inputs: by name, or the only one that is not the labels."""
    names = [tensor.name for tensor in plan.inputs]
    if all(name in arrays for name in names):
        return [(name, arrays[name]) for name in names]
    others = [name for name in arrays if name != labels]
    if len(names) == 1 and len(others) == 1:
        return [(None, arrays[others[0]])]
    raise compile_error(
        "BW205",
        f"'{path}' must have an array for each input: {', '.join(map(repr, names))}",
        notes=(f"it has {', '.join(map(repr, arrays)) or 'none'}",),
        help=f"--labels {others[-1]}" if len(names) == 1 and len(others) == 2 else None,
    )


def _stored_at(path: Path) -> _Stored:
    """What a file or a folder holds.

    Raises:
        CompileError: BW205, BW501.
    """
    try:
        return _read_folder(path) if path.is_dir() else _read(path)
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from error


def _read_folder(folder: Path) -> _Stored:
    """The samples of a folder, one a file, in the order of the names.

    Raises:
        CompileError: BW205: there are none, or they are of different shapes, types or rates.
        OSError: It cannot be read.
    """
    paths = [path for path in sorted(folder.iterdir()) if path.suffix.lower() in SAMPLE_FILES]
    if not paths:
        raise compile_error("BW205", f"folder '{folder}' has no samples: {', '.join(SAMPLE_FILES)} files")
    first, *others = (_read(path) for path in paths)
    for path, other in zip(paths[1:], others, strict=True):
        if (other.array.shape, other.array.dtype, other.rate) != (
            first.array.shape,
            first.array.dtype,
            first.rate,
        ):
            raise compile_error(
                "BW205",
                f"samples of folder '{folder}' differ: '{paths[0].name}' is {_described(first)}, "
                f"'{path.name}' {_described(other)}",
                help="a folder has samples of one shape, one type and one rate; they are not resized or converted",
            )
    mixed_up = (
        (before.name, behind.name)
        for before, behind in pairwise(paths)
        if _by_number(before) > _by_number(behind)
    )
    return _Stored(np.stack([first.array, *(o.array for o in others)]), first.rate, next(mixed_up, None))


def _described(stored: _Stored) -> str:
    rate = "" if stored.rate is None else f" at {stored.rate} Hz"
    return f"{stored.array.dtype}{list(stored.array.shape)}{rate}"


def _by_number(path: Path) -> list[tuple[str, int]]:
    """What orders names by the numbers in them: text, and the number behind it."""
    return [(text, int(number or 0)) for text, number in re.findall(r"(\D*)([0-9]*)", path.name)]


def _require_one_order(folder: Path, stored: _Stored) -> None:
    """Refuses files that would go with other labels if their names were ordered by number.

    Raises:
        CompileError: BW205.
    """
    if stored.mixed_up is not None:
        before, behind = stored.mixed_up
        raise compile_error(
            "BW205",
            f"samples of folder '{folder}' have two orders: '{before}' comes before '{behind}' by name, and behind it "
            "by number, and labels or outputs go with one of them",
            help="write the numbers with as many digits: 001, 002, ..., 010; or give one array",
        )


def _read(path: Path) -> _Stored:
    """What a file holds.

    Raises:
        CompileError: BW205, BW501.
    """
    readers = {".png": _pixels, ".wav": _frames}
    read = readers.get(path.suffix.lower(), lambda content: _Stored(array_from_npy(content)))
    with _reported(path):
        stored = read(read_input(path))
    if stored.array.dtype.kind not in "biuf":
        raise _unreadable(path, f"it holds {stored.array.dtype}, not numbers")
    return stored


class _Archive(Mapping[str, Array]):
    """The arrays of a .npz file, each read when it is asked for: what nobody asks for may be anything.

    Raises:
        CompileError: BW205 for one that cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with _reported(path):
            self._archive = zipfile.ZipFile(io.BytesIO(read_input(path)))
            members = [name for name in self._archive.namelist() if name.endswith(".npy")]
            twice = [name for name, count in Counter(members).items() if count > 1]
            if twice:
                raise ValueError(f"it has {twice[0]!r} twice")
        self._names = [name.removesuffix(".npy") for name in members]

    def __getitem__(self, name: str) -> Array:
        if name not in self._names:
            raise KeyError(name)
        with _reported(self._path):
            return array_from_npy(self._archive.read(f"{name}.npy"))

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


@contextmanager
def _reported(path: Path) -> Generator[None, None, None]:
    """What readers trip over in a file, which can be anything, as BW205."""
    try:
        yield
    except CompileError:
        raise
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from error
    except (ValueError, EOFError, wave.Error, zipfile.BadZipFile) as error:
        raise _unreadable(path, str(error) or "it ends too early") from error
    except Exception as error:
        raise _unreadable(path, f"it is damaged: {str(error) or type(error).__name__}") from error


def _unreadable(path: Path, reason: str) -> CompileError:
    return compile_error("BW205", f"cannot read '{path}': {reason}")


def _pixels(content: bytes) -> _Stored:
    """The pixels of a picture as they are stored: uint8[H, W, C], with one channel where it is grey."""
    try:
        pictures: Any = importlib.import_module("PIL.Image")
    except ImportError:
        message = "to read pictures, the package Pillow is needed, and it is not installed"
        raise compile_error("BW501", message, help='install it: pip install "bytewright[validate]"') from None
    if not content.startswith(_PNG_MAGIC):
        raise ValueError("it is no PNG picture")
    with pictures.open(io.BytesIO(content), formats=["PNG"]) as image:
        if image.mode == "P":
            raise ValueError("its pixels are numbers of a palette; store them as grey or RGB")
        if image.n_frames > 1:
            raise ValueError(f"it holds {image.n_frames} pictures")
        pixels: Array = np.asarray(image)
    return _Stored(pixels[..., np.newaxis] if pixels.ndim == 2 else pixels)


def _frames(content: bytes) -> _Stored:
    """The frames of a recording as they are stored: [frames], or [frames, channels] if there are several."""
    types: dict[int, Any] = {1: np.uint8, 2: np.dtype("<i2"), 4: np.dtype("<i4")}
    with wave.open(io.BytesIO(content)) as recording:
        width, channels, count = recording.getsampwidth(), recording.getnchannels(), recording.getnframes()
        if width not in types:
            raise ValueError(f"its samples have {8 * width} bits")
        data = recording.readframes(count)
        if len(data) != count * channels * width:
            raise ValueError(f"it ends after {len(data)} B of {count} frames of {channels * width} B")
        frames = np.frombuffer(data, types[width])
        return _Stored(frames if channels == 1 else frames.reshape(-1, channels), recording.getframerate())
