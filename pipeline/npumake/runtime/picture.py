"""Reads a file as the feed of one session input: a picture, or stored numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from npumake.data.colors import gray, yuv_full
from npumake.data.formats import InputSpec, decoded
from npumake.data.pictures import pixels
from npumake.engine.port import Port
from npumake.errors import ProjectError, did_you_mean
from npumake.project.sections import Files

PICTURES = (".jpg", ".jpeg", ".png", ".bmp")
MAX_FILE_BYTES = 1 << 30  # of one file
COLORS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "rgb": lambda rgb: rgb,
    "bgr": lambda rgb: rgb[..., ::-1],
    "gray": gray,
    "yuv444": yuv_full,
}


def read(file: Path) -> bytes:
    """The file's bytes. Raises ProjectError for a missing file and for more than 1 GiB."""
    if not file.is_file():
        raise ProjectError("no such file", str(file))
    if file.stat().st_size > MAX_FILE_BYTES:
        raise ProjectError(f"a file of more than {MAX_FILE_BYTES} bytes", str(file))
    return file.read_bytes()


def feed_from_file(file: Path, port: Port, colors: str | None = None) -> np.ndarray:
    """An array of the port's shape. Raises ProjectError.

    A picture is stretched to the port's height and width: uint8, in `colors` (default: gray for one
    channel, else rgb). Other files hold numbers, `.npy` or bare; real numbers stay real, because
    only the session knows the scale."""
    shape = closed(port)
    if file.suffix.lower() in PICTURES:
        return _picture(read(file), file.name, shape, colors)
    spec = InputSpec(shape, str(port.dtype))
    array = decoded(read(file), file.name, Files(dtype=None), spec)
    if array.size != np.prod(shape):
        message = f"{list(array.shape)}, where `{port.name}` takes {list(shape)}"
        raise ProjectError(message, str(file))
    takes_codes, is_real = port.dtype.kind in "iu", array.dtype.kind == "f"
    if array.dtype != np.uint8:
        original, array = array, array.astype(np.float32 if takes_codes and is_real else port.dtype)
        if takes_codes and not is_real and (original != array).any():
            raise ProjectError(f"it has numbers that {port.dtype} does not hold", str(file))
    return array.reshape(shape)


def closed(port: Port) -> tuple[int, ...]:
    """The port's shape, open dimensions as 1."""
    return tuple(size if isinstance(size, int) else 1 for size in port.shape)


def is_nhwc(shape: Sequence[int], name: str) -> bool:
    """Whether the last axis holds the one or three channels; False if axis 1 fits too. Raises
    ProjectError if neither does."""
    if len(shape) != 4 or not {shape[1], shape[3]} & {1, 3}:
        raise ProjectError(f"an input of {list(shape)} is not a picture", name, "feed a .npy file")
    return shape[1] not in (1, 3)


def size(shape: Sequence[int], name: str) -> tuple[int, int]:
    """(height, width)."""
    return (shape[1], shape[2]) if is_nhwc(shape, name) else (shape[2], shape[3])


def _picture(data: bytes, name: str, shape: tuple[int, ...], colors: str | None) -> np.ndarray:
    is_last, (height, width) = is_nhwc(shape, name), size(shape, name)
    channels = shape[3] if is_last else shape[1]
    kind = colors or ("gray" if channels == 1 else "rgb")
    if kind not in COLORS:
        raise ProjectError(f"no colors `{kind}`", name, did_you_mean(kind, COLORS))
    image = Image.fromarray(pixels(data, name, "RGB", upright=True))
    rgb = np.asarray(image.resize((width, height), Image.Resampling.BILINEAR))
    picture = COLORS[kind](rgb).astype(np.uint8)
    if picture.shape[-1] != channels:
        message = f"{kind} has {picture.shape[-1]} channels, the input takes {channels}"
        raise ProjectError(message, name)
    laid_out = picture if is_last else picture.transpose(2, 0, 1)
    return np.ascontiguousarray(np.broadcast_to(laid_out, (shape[0], *laid_out.shape)))
