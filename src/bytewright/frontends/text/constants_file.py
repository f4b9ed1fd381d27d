"""The file beside a text that holds its constants: an .npz archive of arrays, each under a name.

The text refers to an array by the digest of its bytes or by its name. What is written here is the same for the same
constants on every machine and on every day, which numpy's own writer does not promise.
"""

import io
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from bytewright import ir
from bytewright.base.input_file import require_regular
from bytewright.diagnostics import Collector, CompileError, compile_error
from bytewright.ir.text.reader import Constants

SUFFIX = ".npz"
# Of all arrays of a file together, once unpacked; an archive that holds more is not what a text needs.
MAX_BYTES = 1 << 31
_DTYPES = {dtype.numpy: dtype for dtype in ir.DType}
_LONG_AGO = (1980, 1, 1, 0, 0, 0)


def read_constants(path: Path) -> Constants:
    """The arrays of a file, by digest and by name.

    Raises:
        CompileError: BW101 if it cannot be read, is no archive of arrays, or holds arrays of other types.
    """
    problems = Collector()
    by_name: dict[str, ir.TensorData] = {}
    try:
        require_regular(path)
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            total = sum(member.file_size for member in members)
            if total > MAX_BYTES:
                raise _refused(path, f"its arrays have {total} B, at most {MAX_BYTES} B are read")
            for member in members:
                name = member.filename.removesuffix(".npy")
                with problems.catch():
                    by_name[name] = _read_array(path, name, archive.read(member))
    except (OSError, zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        reason = (
            error.strerror if isinstance(error, OSError) and error.strerror else f"it is damaged ({error})"
        )
        raise _refused(path, reason) from error
    problems.stop_if_any()
    return Constants({data.digest: data for data in by_name.values()}, by_name)


def _read_array(path: Path, name: str, content: bytes) -> ir.TensorData:
    stream = io.BytesIO(content)
    try:
        version = np.lib.format.read_magic(stream)
        header = (
            np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        )
        shape, is_fortran, dtype = header(stream)
    except ValueError as error:
        raise _refused(path, f"'{name}' is no array ({error})") from error
    known = _DTYPES.get(dtype.newbyteorder("<"))
    if known is None:
        names = ", ".join(str(dtype.numpy) for dtype in ir.DType)
        raise _refused(path, f"'{name}' is an array of {dtype}; constants are of {names}")
    num_bytes = int(np.prod([int(extent) for extent in shape], dtype=object)) * known.size_bytes
    if num_bytes != len(content) - stream.tell():
        raise _refused(path, f"'{name}' states {num_bytes} B and has {len(content) - stream.tell()} B")
    array = np.frombuffer(content, dtype, offset=stream.tell())
    ordered = array.reshape(shape[::-1]).transpose() if is_fortran else array.reshape(shape)
    return ir.TensorData.from_array(ordered, known)


def constants_archive(constants: Mapping[str, ir.TensorData]) -> bytes:
    """The content of a file with these constants."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for name, data in constants.items():
            array = io.BytesIO()
            np.lib.format.write_array(array, data.array, allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy", _LONG_AGO), array.getvalue())
    return stream.getvalue()


def _refused(path: Path, reason: str) -> CompileError:
    return compile_error("BW101", f"cannot read the constants of '{path}': {reason}")
