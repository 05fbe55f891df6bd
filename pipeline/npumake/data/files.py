"""Prepares one sample: transforms its array, checks it against the input, subtracts the offset."""

from __future__ import annotations

import zlib
from collections.abc import Callable

import numpy as np

from npumake.data.formats import InputSpec, is_plain
from npumake.data.transforms import transformed
from npumake.errors import ProjectError
from npumake.project.sections import Files

IMAGE_TYPES = ("uint8", "float32", "float16")
MAX_EXACT_INTEGER = 1 << 24  # whole numbers up to here are float32


def prepared(
    array: np.ndarray, name: str, how: Files, spec: InputSpec, layout: str = "NCHW", route: str = ""
) -> np.ndarray:
    """The sample in the input's shape, before its offset.

    With offset 128 it is an 8-bit image: 0..255 as uint8 or float32. The file may omit the leading
    1 of the input's shape. Images, raw numbers and transformed arrays are converted to the input's
    type. A typed file must have that type, or values that the type represents; uint8 counts only if
    `how.dtype` is the input's type. `layout` is the input's, `route` the key of the transforms.
    Raises ProjectError with the file and the expectation.
    """
    if array.size == 0:
        raise ProjectError("an empty sample", name)
    is_as_stored = is_plain(name) and not how.transforms
    if how.transforms:
        _check_numbers(array, name)
        size = _size(spec.shape, layout)
        array = transformed(_single(array), how.transforms, size, route, name)
    if not is_as_stored:
        array = _laid_out(array, spec.shape, layout)
    _check_shape(array, name, spec.shape)
    if is_as_stored:
        _check_type(array, name, spec, is_meant=how.dtype == spec.dtype)
    _check_numbers(array, name)  # a transform may have divided by zero
    return array.reshape(spec.shape)


def to_feed(array: np.ndarray, spec: InputSpec) -> np.ndarray:
    """`array` in the input's type, minus the offset: an image as value - 128."""
    if not spec.offset:
        return array.astype(spec.dtype)
    return (array.astype(spec.dtype) - np.asarray(spec.offset, spec.dtype)).astype(spec.dtype)


def noise(name: str, how: Files, spec: InputSpec) -> Callable[[int], np.ndarray]:
    """A function that returns the i-th seeded sample, uniform in `how.range`, 0..255 or 0..1."""
    low, high = how.range or ((0.0, 255.0) if spec.offset else (0.0, 1.0))
    seed = zlib.crc32(name.encode())

    def sample(index: int) -> np.ndarray:
        uniform = np.random.Generator(np.random.PCG64([seed, index])).random(spec.shape)
        values = low + (high - low) * uniform
        whole = spec.offset or np.dtype(spec.dtype).kind in "biu"
        return np.rint(values) if whole else values.astype(np.float32)

    return sample


def _size(shape: tuple[int, ...], layout: str) -> tuple[int, int]:
    """Height and width of an input; zeros for other data than images."""
    if len(shape) != 4:
        return 0, 0
    return (shape[1], shape[2]) if layout == "NHWC" else (shape[2], shape[3])


def _single(array: np.ndarray) -> np.ndarray:
    return array[0] if array.ndim == 4 and len(array) == 1 else array


def _laid_out(array: np.ndarray, shape: tuple[int, ...], layout: str) -> np.ndarray:
    """An image (H, W, C) in the input's layout."""
    if array.ndim != 3 or layout != "NCHW" or array.shape == shape[1:]:
        return array
    turned = array.transpose(2, 0, 1)
    return turned if turned.shape == shape[1:] else array


def _check_numbers(array: np.ndarray, name: str) -> None:
    if array.dtype.kind not in "biuf":
        raise ProjectError(f"a sample of {array.dtype.name}, which are not numbers", name)
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ProjectError("a sample with NaN or infinity", name)


def _check_shape(array: np.ndarray, name: str, shape: tuple[int, ...]) -> None:
    if array.shape in (shape, shape[1:]) and (array.shape == shape or shape[0] == 1):
        return
    message = f"a sample of shape {list(array.shape)}, the input takes {list(shape)}"
    raise ProjectError(message, name, _hint(array, name, shape))


def _hint(array: np.ndarray, name: str, shape: tuple[int, ...]) -> str:
    if not is_plain(name):
        return "`transforms: [resize]` or `[pad_resize]` make an image fit"
    if array.shape[1:] in (shape, shape[1:]):
        return "`stacked: true` under `data:` if the first dimension counts samples"
    return ""


def is_cast(stored: str, spec: InputSpec) -> bool:
    """Whether the cast to the input's type may change values, which deserves a note. float16 to
    float32 is exact."""
    return not spec.offset and stored not in (spec.dtype, "float16")


def _check_type(array: np.ndarray, name: str, spec: InputSpec, is_meant: bool) -> None:
    """Raises ProjectError for another type. uint8 may be a picture: it is cast if `is_meant`."""
    stored = array.dtype.name
    if stored in (IMAGE_TYPES if spec.offset else (spec.dtype,)):
        return
    if not spec.offset and (stored != "uint8" or is_meant) and _holds(array, spec.dtype):
        return
    allowed = IMAGE_TYPES[:2] if spec.offset else (spec.dtype,)
    message = f"a sample of {stored}, the input takes {' or '.join(allowed)}"
    raise ProjectError(message, name, _how_to_cast(stored, spec))


def _holds(array: np.ndarray, dtype: str) -> bool:
    """Whether the cast keeps the values; float64 may lose its last bits."""
    kind = np.dtype(dtype).kind
    if array.dtype.kind not in "biuf" or kind not in "biuf":
        return False
    if kind == "f":
        max_value = MAX_EXACT_INTEGER if array.dtype.kind in "iu" else float(np.finfo(dtype).max)
        return not array.size or float(np.abs(array.astype(np.float64)).max()) <= max_value
    with np.errstate(invalid="ignore"):
        return bool((array.astype(dtype).astype(np.float64) == array.astype(np.float64)).all())


def _how_to_cast(stored: str, spec: InputSpec) -> str:
    if stored == "uint8" and not spec.offset and np.dtype(spec.dtype).kind == "f":
        return "`offset: 128` under `inputs:` if these are 8-bit images"
    return f"save it as {IMAGE_TYPES[0] if spec.offset else spec.dtype}: x.astype(...)"
