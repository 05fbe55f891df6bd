"""npumake synap image_to_raw | image_from_raw | image_od: the image tools of SyNAP's toolkit.

A destination that is only a suffix, such as .nv12, takes its name from the source. The default
format is the suffix of the raw file.
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
MAX_FILE_BYTES = 1 << 30
SIZE = re.compile(r"([1-9][0-9]{0,5})x([1-9][0-9]{0,5})")
SIZE_IN_NAME = re.compile(r"[@_]([1-9][0-9]{0,5}x[1-9][0-9]{0,5})(?=_|$)")
SAVE_OPTIONS: dict[str, dict[str, Any]] = {
    ".png": {},
    ".jpg": {"quality": 95},
    ".jpeg": {"quality": 95},
    ".bmp": {},
}


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the three commands; `act` takes the arguments and returns the exit code."""
    to_raw = _command(commands, "image_to_raw", "write a .png or .jpg without a header", to_raw_run)
    from_raw = _command(commands, "image_from_raw", "make an image of raw values", from_raw_run)
    detector = _command(
        commands, "image_od", "draw detections, JSON on the input, over an image", od
    )
    for command in (to_raw, from_raw):
        command.add_argument("-s", "--size", metavar="WxH", help="in pixels")
    to_raw.add_argument("--format", help="nv12, nv21, nv15, rgb, rgbp, bgr or bgra")
    from_raw.add_argument("--format", help="nv12, nv21, nv15, rgb, rgbp, bgr, bgra or gray")
    from_raw.add_argument("--dtype", help="uint8, uint10, float32 or float16")
    from_raw.add_argument("--scale", type=float, default=1.0, help="(value + bias) * scale")
    from_raw.add_argument("--bias", type=float, default=0.0, help="(value + bias) * scale")
    detector.add_argument("--mask_colors", type=Path, metavar="JSON", help="[b, g, r] by class")
    detector.add_argument(
        "--verbose", action="store_true", help="list the detections without a mask"
    )


def to_raw_run(arguments: argparse.Namespace) -> int:
    from npumake.data.pictures import pixels
    from npumake.data.raw_images import to_raw

    destination = _destination(arguments.src, arguments.dst)
    size = _size(arguments.size) if arguments.size else None
    picture = pixels(_read(arguments.src), str(arguments.src), "RGB", upright=True, deep=True)
    form = _format(arguments.format, destination)
    _write(destination, _with_file(arguments.src, lambda: to_raw(picture, form, size)))
    return 0


def from_raw_run(arguments: argparse.Namespace) -> int:
    from PIL import Image

    from npumake.data.raw_images import from_raw

    destination = _destination(arguments.src, arguments.dst)
    form = _format(arguments.format, arguments.src)
    dtype = arguments.dtype or ("uint10" if form == "nv15" else "uint8")
    size, linear = (
        _size(arguments.size or _size_in(arguments.src)),
        (arguments.scale, arguments.bias),
    )
    data = _read(arguments.src)
    rgb = _with_file(arguments.src, lambda: from_raw(data, form, size, dtype, linear))
    save_picture(destination, Image.fromarray(rgb))
    return 0


def od(arguments: argparse.Namespace) -> int:
    from npumake.data.detections import detections, mask_colors, table, with_detections
    from npumake.data.pictures import pixels

    destination, colors = _destination(arguments.src, arguments.dst), arguments.mask_colors
    picture = pixels(_read(arguments.src), str(arguments.src), "RGB", upright=True, deep=True)
    chosen = _with_file(colors, lambda: mask_colors(_text(_read(colors)))) if colors else {}
    text = _text(sys.stdin.buffer.read(MAX_FILE_BYTES))
    drawn_detections = detections(text)
    save_picture(destination, with_detections(picture, drawn_detections, chosen))
    for line in table(drawn_detections):
        print(line)
    if arguments.verbose:
        for n in (n for n, detection in enumerate(drawn_detections) if detection.mask is None):
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


def _destination(source: Path, name: str) -> Path:
    """The file `name`; a suffix alone is appended to the source's name."""
    is_suffix = name.startswith(".") and "/" not in name
    return source.with_name(source.stem + name) if is_suffix else Path(name)


def _format(name: str | None, raw: Path) -> str:
    return (name or raw.suffix.removeprefix(".")).lower()


def _size(text: str) -> tuple[int, int]:
    """(height, width) of WxH."""
    match = SIZE.fullmatch(text)
    if match is None:
        raise ProjectError(f"`{text}` is not a size", "--size", "write it as WxH: 640x480")
    return int(match[2]), int(match[1])


def _size_in(source: Path) -> str:
    """WxH of a name such as face_640x480.rgb or face@640x480_out.rgb."""
    sizes = SIZE_IN_NAME.findall(source.stem)
    if not sizes:
        hint = "give --size WxH, or rename the file to NAME_640x480"
        raise ProjectError("no size in the name of the file", str(source), hint)
    return str(sizes[-1])


def _with_file(where: Path, compute: Callable[[], T]) -> T:
    """The result of `compute`; its PipelineError points to the file `where`."""
    try:
        return compute()
    except PipelineError as error:
        error.where = error.where or str(where)
        raise


def _read(file: Path) -> bytes:
    if not file.is_file():
        raise ProjectError("no such file", str(file))
    try:
        with file.open("rb") as stream:
            data = stream.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise ProjectError(f"cannot read the file: {error.strerror}", str(file)) from None
    if len(data) > MAX_FILE_BYTES:
        raise ProjectError(f"a file of more than {MAX_FILE_BYTES} bytes", str(file))
    return data


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def save_picture(file: Path, picture: Image.Image) -> None:
    from npumake.cache.publish import replacing

    options = SAVE_OPTIONS.get(file.suffix.lower())
    if options is None:
        raise ProjectError(
            f"`{file.suffix}` is not an image format",
            str(file),
            f"known: {', '.join(SAVE_OPTIONS)}",
        )
    with replacing(file) as temporary:
        picture.save(temporary, **options)


def _write(file: Path, data: bytes) -> None:
    from npumake.cache.publish import replacing

    with replacing(file) as temporary:
        temporary.write_bytes(data)
