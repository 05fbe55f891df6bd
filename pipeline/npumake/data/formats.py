"""Reads the array in a file, by suffix. Files are untrusted: no code is run, and no header can
allocate more than MAX_MEMBER_BYTES or the file's own size."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from threading import Lock
from tokenize import TokenError
from typing import Any

import numpy as np
import safetensors

from npumake.data.pictures import pixels
from npumake.errors import ProjectError, did_you_mean
from npumake.project.sections import Files

MAX_HEADER_BYTES = 1000  # bytes of a .npy header; numeric arrays need less
MAX_MEMBER_BYTES = 1 << 28  # of one member of an archive
HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
TENSORS = {  # type names of safetensors → NumPy
    "BOOL": "?",
    **{f"U{bits}": f"<u{bits // 8}" for bits in (8, 16, 32, 64)},
    **{f"I{bits}": f"<i{bits // 8}" for bits in (8, 16, 32, 64)},
    **{f"F{bits}": f"<f{bits // 8}" for bits in (16, 32, 64)},
}
# NumPy parses a header with Python's parser, which before 3.11.8 fails in two threads (gh-106905).
_PARSER = Lock()
MODES = {"rgb": "RGB", "bgr": "RGB", "auto": "RGB", "gray": "L"}


@dataclass(frozen=True)
class InputSpec:
    """An input's shape and type for one sample; offset 128 means an 8-bit image."""

    shape: tuple[int, ...]
    dtype: str
    offset: int = 0


def decoded(data: bytes, name: str, how: Files, spec: InputSpec) -> np.ndarray:
    """The array in the file `name`; an image as (H, W, C), raw numbers in the input's shape.

    Raises ProjectError with the file's name if it is damaged, too large or not of its suffix.
    """
    return FORMATS.get(PurePosixPath(name).suffix.lower(), raw)(data, name, how, spec)


def is_plain(name: str) -> bool:
    """Whether the format stores the type of the numbers."""
    return PurePosixPath(name).suffix.lower() in (".npy", ".npz", ".safetensors")


def is_image(name: str) -> bool:
    return FORMATS.get(PurePosixPath(name).suffix.lower()) is image


def npy(data: bytes, name: str, _how: Files, _spec: InputSpec) -> np.ndarray:
    """A view of `data`, so that a wrong header cannot allocate memory."""
    file = io.BytesIO(data)
    try:
        read_header = HEADERS[np.lib.format.read_magic(file)]
        with _PARSER:
            shape, is_fortran, dtype = read_header(file, max_header_size=MAX_HEADER_BYTES)
        if min(shape, default=0) < 0:  # reshape would accept -1
            raise ValueError(f"a shape of {shape}")
        flat = np.frombuffer(data[file.tell() :], dtype)  # a ValueError for pickled objects
        return flat.reshape(shape, order="F" if is_fortran else "C")
    except (KeyError, SyntaxError, TokenError, TypeError, ValueError) as error:
        raise ProjectError(f"not a .npy file of numbers: {error}", name) from error


def npz(data: bytes, name: str, how: Files, spec: InputSpec) -> np.ndarray:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = {entry.filename.removesuffix(".npy"): entry for entry in archive.infolist()}
            entry = entries[_member(entries, how.member, name)]
            if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise ProjectError("a .npz file with an unusual compression", name)
            with archive.open(entry) as member:
                inside = member.read(MAX_MEMBER_BYTES + 1)
    except (zipfile.BadZipFile, zlib.error, RuntimeError, OSError, EOFError, ValueError) as error:
        raise ProjectError(f"not a .npz file: {error}", name) from error
    if len(inside) > MAX_MEMBER_BYTES:
        raise ProjectError(
            f"member `{entry.filename}` has more than {MAX_MEMBER_BYTES} bytes", name
        )
    return npy(inside, name, how, spec)


def tensors(data: bytes, name: str, how: Files, _spec: InputSpec) -> np.ndarray:
    try:
        by_name: dict[str, Any] = dict(safetensors.deserialize(data))
    except safetensors.SafetensorError as error:
        raise ProjectError(f"not a .safetensors file: {error}", name) from error
    tensor = by_name[_member(by_name, how.member, name)]
    if tensor["dtype"] not in TENSORS:
        raise ProjectError(f"a tensor of {tensor['dtype']} is not supported", name)
    return np.frombuffer(tensor["data"], TENSORS[tensor["dtype"]]).reshape(tensor["shape"])


def image(data: bytes, name: str, how: Files, spec: InputSpec) -> np.ndarray:
    """(H, W, C) as stored; the EXIF orientation is ignored."""
    picture = pixels(data, name, _mode(how, spec))
    picture = picture[..., ::-1] if how.channels == "bgr" else picture
    return picture if how.values == "0..255" else picture.astype(np.float32) / np.float32(255)


def _mode(how: Files, spec: InputSpec) -> str:
    """The Pillow mode to convert an image to."""
    has_one = len(spec.shape) == 4 and 1 in (spec.shape[1], spec.shape[3])
    order = "gray" if how.channels == "auto" and has_one else how.channels
    return MODES[order or "rgb"]


def raw(data: bytes, name: str, how: Files, spec: InputSpec) -> np.ndarray:
    dtype = np.dtype(how.dtype or ("uint8" if spec.offset else spec.dtype)).newbyteorder("<")
    expected = int(np.prod(spec.shape)) * dtype.itemsize
    if len(data) != expected:
        raise ProjectError(
            f"{len(data)} bytes, the input takes {expected}: {list(spec.shape)} of {dtype.name}",
            name,
            "set `dtype` under `data:` to the type of raw numbers",
        )
    return np.frombuffer(data, dtype).reshape(spec.shape)


def _member(names: Collection[str], member: str | None, file: str) -> str:
    if member is None and len(names) == 1:
        return next(iter(names))
    if member is None:
        hint = f"name one with `member`: {', '.join(sorted(names)[:5])}"
        raise ProjectError(f"{len(names)} arrays in one file", file, hint)
    if member not in names:
        raise ProjectError(f"no array `{member}` in the file", file, did_you_mean(member, names))
    return member


Decode = Callable[[bytes, str, Files, InputSpec], np.ndarray]
FORMATS: Mapping[str, Decode] = {
    ".npy": npy,
    ".npz": npz,
    ".safetensors": tensors,
    ".jpg": image,
    ".jpeg": image,
    ".png": image,
    ".bmp": image,
}
