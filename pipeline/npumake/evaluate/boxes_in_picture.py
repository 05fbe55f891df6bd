"""Maps boxes from the model's input back to the original picture.

    each step maps pixel p to a * p + b per axis, all steps together to A * p + B, so
    a box at fraction u of an input of size s comes from  (u * s - B) / A

Color steps do not move pixels. Steps that crop or warp have no such inverse and are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from npumake.data.geometry import pair
from npumake.errors import ProjectError, Route
from npumake.project import transforms as steps
from npumake.project.transforms import Transform

Size = tuple[int, int]  # height, width


class PixelTransform(NamedTuple):
    """p → scale * p + shift, each (y, x); `size` is the resulting (height, width)."""

    scale: tuple[float, float]
    shift: tuple[float, float]
    size: Size


def boxes_in_picture(
    boxes: np.ndarray, chain: Sequence[Transform], picture: Size, input_size: Size
) -> np.ndarray:
    """`boxes` (n, 4), corners x, y, x, y in 0..1 of the model's input → pixels of the picture."""
    moved = pixel_transform(chain, picture, input_size)
    scale = np.array([moved.scale[1], moved.scale[0]] * 2)
    shift = np.array([moved.shift[1], moved.shift[0]] * 2)
    unit = np.array([input_size[1], input_size[0]] * 2)
    return (np.asarray(boxes, np.float64) * unit - shift) / scale


def refuse_other_geometry(chain: Sequence[Transform]) -> None:
    """Raises ProjectError for a step that boxes cannot be mapped through."""
    for step in chain:
        ((name, _),) = step.items()
        if name not in GEOMETRIC and name not in COLOR_ONLY:
            hint = f"give `transforms` under `evaluation.dataset`: {', '.join(GEOMETRIC)}"
            message = f"boxes cannot be mapped back through `{name}`"
            raise ProjectError(message, Route("evaluation.dataset"), hint)


def pixel_transform(chain: Sequence[Transform], picture: Size, input_size: Size) -> PixelTransform:
    """All steps combined into one."""
    whole = PixelTransform((1.0, 1.0), (0.0, 0.0), picture)
    for step in chain:
        ((name, arguments),) = step.items()
        if name in GEOMETRIC:
            next_step = GEOMETRIC[name](arguments, whole.size, input_size)
            scale = (whole.scale[0] * next_step.scale[0], whole.scale[1] * next_step.scale[1])
            shift = (
                whole.shift[0] * next_step.scale[0] + next_step.shift[0],
                whole.shift[1] * next_step.scale[1] + next_step.shift[1],
            )
            whole = PixelTransform(scale, shift, next_step.size)
    return whole


def _stretched(size: Size, to: Size) -> PixelTransform:
    return PixelTransform((to[0] / size[0], to[1] / size[1]), (0.0, 0.0), to)


def _resize(step: steps.Resize, size: Size, input_size: Size) -> PixelTransform:
    return _stretched(size, pair(step.target_size or input_size))


def _pil_resize(step: steps.PilResize, size: Size, input_size: Size) -> PixelTransform:
    if isinstance(step.size, int):
        message = "a size with only the short side"
        raise ProjectError(message, Route("evaluation.dataset"), "give both sides")
    return _stretched(size, pair(step.size or input_size))


def _pad_resize(step: steps.PadResize, size: Size, input_size: Size) -> PixelTransform:
    to = pair(step.target_size or input_size)
    scale = min(to[0] / size[0], to[1] / size[1])
    inner = (max(int(size[0] * scale), 1), max(int(size[1] * scale), 1))
    around = step.pad_position == "boundary"
    top, left = (((to[n] - inner[n]) // 2 if around else 0) for n in (0, 1))
    return PixelTransform((inner[0] / size[0], inner[1] / size[1]), (float(top), float(left)), to)


GEOMETRIC: Mapping[str, Callable[[Any, Size, Size], PixelTransform]] = {
    "resize": _resize,
    "pad_resize": _pad_resize,
    "pil_resize": _pil_resize,
}
COLOR_ONLY = frozenset(
    (
        *("add", "mean", "scale", "normalize", "transpose", "hwc2chw", "chw2hwc"),
        *("bgr2rgb", "rgb2bgr", "rgb2gray", "bgr2gray", "rgb2gray_128", "rgb2yuv444"),
        *("bgr2yuv444", "bgr2yuv444_128", "rgb2yuv444_128", "bgr2yuvbt601video"),
        *("rgb2yuvbt601video", "yuv", "reduce_channel", "f32_to_s8", "f32_to_u8"),
    )
)
