"""Decodes JPEG, PNG and BMP to 8-bit pixels. Files are untrusted: Pillow's MAX_IMAGE_PIXELS bounds
the memory."""

from __future__ import annotations

import io
import struct
import warnings
import zlib
from threading import Lock

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from npumake.errors import ProjectError

# Exceptions of Pillow for invalid images, and for decompression bombs.
_NO_IMAGE = (OSError, SyntaxError, ValueError, EOFError, IndexError, struct.error, zlib.error)
_BOMB = (Image.DecompressionBombError, Image.DecompressionBombWarning)

_FILTERS = Lock()  # warning filters are global to all threads


def pixels(
    data: bytes, name: str, mode: str, *, upright: bool = False, deep: bool = False
) -> np.ndarray:
    """(H, W, C), uint8, in Pillow's `mode`; `upright` applies the EXIF orientation.

    Channels of 16 bits keep their upper 8. Gray images of 16 bits need `deep`, since measurements
    may lie in the lower bits. Raises ProjectError with the file's name if it is damaged, too large
    or no 8-bit image.
    """
    try:
        with _opened(data) as opened:
            image = ImageOps.exif_transpose(opened) if upright else opened
            array = np.asarray(_eight_bits(image, name, deep).convert(mode))
    except _BOMB as error:
        message = f"an image of more than {Image.MAX_IMAGE_PIXELS} pixels"
        raise ProjectError(message, name, "resize it to the model's input") from error
    except UnidentifiedImageError:
        raise ProjectError("not a JPEG, PNG or BMP image", name) from None
    except _NO_IMAGE as error:
        raise ProjectError(f"a damaged image: {error}", name) from error
    return array.reshape(*array.shape[:2], -1)


def _opened(data: bytes) -> Image.Image:
    """The image with its header read. Raises for the size of a decompression bomb."""
    with _FILTERS, warnings.catch_warnings():
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        return Image.open(io.BytesIO(data), formats=("JPEG", "PNG", "BMP"))


def _eight_bits(opened: Image.Image, name: str, deep: bool) -> Image.Image:
    if deep and opened.mode.startswith("I;16"):
        return Image.fromarray((np.asarray(opened) >> 8).astype(np.uint8))
    if opened.mode not in ("1", "L", "LA", "P", "PA", "RGB", "RGBA", "CMYK", "YCbCr"):
        message = f"an image of mode {opened.mode}: only 8 bits are read"
        hint = "save it with 8 bits per channel, or its values as a .npy of the input's shape"
        raise ProjectError(message, name, hint)
    return opened
