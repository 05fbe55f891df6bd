"""npumake synap image_to_raw | image_from_raw | image_od: the image tools of SyNAP's toolkit.

A destination that is a bare suffix, as .nv12, takes the rest of its name from the source; a format
left out is the suffix of the raw file.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from npumake.errors import PipelineError, ProjectError

if TYPE_CHECKING:
    from PIL import Image

T = TypeVar("T")
MOST_BYTES = 1 << 30  # of a file that is read
SIZE = re.compile(r"([1-9][0-9]{0,5})x([1-9][0-9]{0,5})")
SIZE_IN_NAME = re.compile(r"[@_]([1-9][0-9]{0,5}x[1-9][0-9]{0,5})(?=_|$)")
SAVED: dict[str, dict[str, Any]] = {
    ".png": {},
    ".jpg": {"quality": 95},
    ".jpeg": {"quality": 95},
    ".bmp": {},
}


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The three commands, each with what it does as `act`: given → exit code."""
    to_raw = _command(commands, "image_to_raw", "write a .png or .jpg without a header", to_raw_run)
    from_raw = _command(commands, "image_from_raw", "make an image of raw values", from_raw_run)
    found = _command(commands, "image_od", "draw detections, JSON on the input, over an image", od)
    for command in (to_raw, from_raw):
        command.add_argument("-s", "--size", metavar="WxH", help="in pixels")
    to_raw.add_argument("--format", help="nv12, nv21, nv15, rgb, rgbp, bgr or bgra")
    from_raw.add_argument("--format", help="nv12, nv21, nv15, rgb, rgbp, bgr, bgra or gray")
    from_raw.add_argument("--dtype", help="uint8, uint10, float32 or float16")
    from_raw.add_argument("--scale", type=float, default=1.0, help="(value + bias) * scale")
    from_raw.add_argument("--bias", type=float, default=0.0, help="(value + bias) * scale")
    found.add_argument("--mask_colors", type=Path, metavar="JSON", help="[b, g, r] by class")
    found.add_argument("--verbose", action="store_true", help="tell which detections lack a mask")


def to_raw_run(given: argparse.Namespace) -> int:
    from npumake.data.pictures import pixels
    from npumake.data.raw_images import to_raw

    made = _named(given.src, given.dst)
    size = _size(given.size) if given.size else None
    picture = pixels(_read(given.src), str(given.src), "RGB", upright=True, deep=True)
    form = _format(given.format, made)
    _write(made, _placed(given.src, lambda: to_raw(picture, form, size)))
    return 0


def from_raw_run(given: argparse.Namespace) -> int:
    from PIL import Image

    from npumake.data.raw_images import from_raw

    made = _named(given.src, given.dst)
    form = _format(given.format, given.src)
    dtype = given.dtype or ("uint10" if form == "nv15" else "uint8")
    size, linear = _size(given.size or _size_in(given.src)), (given.scale, given.bias)
    data = _read(given.src)
    rgb = _placed(given.src, lambda: from_raw(data, form, size, dtype, linear))
    save_picture(made, Image.fromarray(rgb))
    return 0


def od(given: argparse.Namespace) -> int:
    from npumake.data.detections import detections, mask_colors, table, with_detections
    from npumake.data.pictures import pixels

    made, colors = _named(given.src, given.dst), given.mask_colors
    picture = pixels(_read(given.src), str(given.src), "RGB", upright=True, deep=True)
    chosen = _placed(colors, lambda: mask_colors(_text(_read(colors)))) if colors else {}
    text = _text(sys.stdin.buffer.read(MOST_BYTES))
    found = detections(text)
    save_picture(made, with_detections(picture, found, chosen))
    for line in table(found):
        print(line)
    if given.verbose:
        for n in (n for n, one in enumerate(found) if one.mask is None):
            print(f"detection {n} has no mask")
    return 0


def _command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    summary: str,
    act: Callable[[argparse.Namespace], int],
) -> argparse.ArgumentParser:
    command = commands.add_parser(name, help=summary, description=summary)
    command.add_argument("-i", "--src", type=Path, required=True, metavar="FILE", help="source")
    command.add_argument("-o", "--dst", required=True, metavar="FILE", help="destination")
    command.set_defaults(act=act)
    return command


def _named(source: Path, given: str) -> Path:
    """The file `given`; the source's name with it, if it is a suffix alone."""
    is_suffix = given.startswith(".") and "/" not in given
    return source.with_name(source.stem + given) if is_suffix else Path(given)


def _format(given: str | None, raw: Path) -> str:
    return (given or raw.suffix.removeprefix(".")).lower()


def _size(text: str) -> tuple[int, int]:
    """(height, width) of WxH."""
    found = SIZE.fullmatch(text)
    if found is None:
        raise ProjectError(f"`{text}` is no size", "--size", "write it as WxH: 640x480")
    return int(found[2]), int(found[1])


def _size_in(source: Path) -> str:
    """WxH of a name such as face_640x480.rgb or face@640x480_out.rgb."""
    found = SIZE_IN_NAME.findall(source.stem)
    if not found:
        hint = "give --size WxH, or call it NAME_640x480"
        raise ProjectError("no size in the name of the file", str(source), hint)
    return str(found[-1])


def _placed(where: Path, made: Callable[[], T]) -> T:
    """What `made` gives; a mistake is told of the file `where`."""
    try:
        return made()
    except PipelineError as error:
        error.where = error.where or str(where)
        raise


def _read(file: Path) -> bytes:
    if not file.is_file():
        raise ProjectError("no such file", str(file))
    try:
        with file.open("rb") as stream:
            data = stream.read(MOST_BYTES + 1)
    except OSError as error:
        raise ProjectError(f"cannot read the file: {error.strerror}", str(file)) from None
    if len(data) > MOST_BYTES:
        raise ProjectError(f"a file of more than {MOST_BYTES} bytes", str(file))
    return data


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def save_picture(file: Path, picture: Image.Image) -> None:
    from npumake.cache.publish import replacing

    options = SAVED.get(file.suffix.lower())
    if options is None:
        raise ProjectError(f"`{file.suffix}` is no image", str(file), f"known: {', '.join(SAVED)}")
    with replacing(file) as temporary:
        picture.save(temporary, **options)


def _write(file: Path, data: bytes) -> None:
    from npumake.cache.publish import replacing

    with replacing(file) as temporary:
        temporary.write_bytes(data)
