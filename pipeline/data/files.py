"""One file, one sample: read, checked against the input it feeds, and shifted to what is fed."""

from __future__ import annotations

import io
from tokenize import TokenError

import numpy as np

from pipeline.errors import ProjectError

IMAGE_TYPES = ("uint8", "float32")
MAX_HEADER = 1000  # bytes; more is no array of numbers
HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def read_sample(
    data: bytes, name: str, shape: tuple[int, ...], dtype: str, offset: int
) -> np.ndarray:
    """The array in a `.npy` file as the input of `shape` and `dtype` is fed it.

    With offset 128 the file holds an 8-bit image, values 0..255 as uint8 or float32, and what is
    fed is value - 128. The leading 1 of the input's shape may be missing in the file.
    Raises ProjectError naming the file and what was expected.
    """
    array = _array(data, name)
    if array.shape not in (shape, shape[1:]) or (array.shape != shape and shape[0] != 1):
        raise ProjectError(
            f"a sample of shape {list(array.shape)}, the input takes {list(shape)}", name
        )
    allowed = IMAGE_TYPES if offset else (dtype,)
    if array.dtype.name not in allowed:
        raise ProjectError(
            f"a sample of {array.dtype.name}, the input takes {' or '.join(allowed)}",
            name,
            "" if offset else "`offset: 128` under `inputs:` if these are 8-bit images",
        )
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ProjectError("a sample with NaN or infinity", name)
    if offset and (array.min() < 0 or array.max() > 255):
        raise ProjectError(f"an image with values {array.min()}..{array.max()}, not 0..255", name)
    return (array.reshape(shape).astype(dtype) - np.asarray(offset, dtype)).astype(dtype)


def _array(data: bytes, name: str) -> np.ndarray:
    """A view of `data`, so that no header makes this take more memory than the file has bytes."""
    file = io.BytesIO(data)
    try:
        read_header = HEADERS[np.lib.format.read_magic(file)]
        shape, is_fortran, dtype = read_header(file, max_header_size=MAX_HEADER)
        flat = np.frombuffer(data[file.tell() :], dtype)  # a ValueError for pickled objects
        array = flat.reshape(shape, order="F" if is_fortran else "C")
    except (KeyError, SyntaxError, TokenError, TypeError, ValueError) as error:
        raise ProjectError(f"not a .npy file of numbers: {error}", name) from error
    if array.size == 0:
        raise ProjectError("an empty sample", name)
    return array
