"""Modes of Resize: every mode, coordinate and rounding, to larger, smaller and uneven sizes."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from operators.case import EVEN, UNEVEN, Mode, mode

COORDINATES = (
    "asymmetric",
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
)
ROUNDINGS = ("floor", "ceil", "round_prefer_floor", "round_prefer_ceil")
SIZES = {
    "twice": {"k": [1.0, 1.0, 2.0, 2.0]},
    "three times by half": {"k": [1.0, 1.0, 3.0, 0.5]},
    "by 0.6 and 1.3": {"k": [1.0, 1.0, 0.6, 1.3]},
    "to given sizes": {"to": lambda s: [*s[:2], s[2] - 3, s[3] + 4]},
}


def _resize(options: str, name: str, *shapes: tuple[int, ...]) -> Mode:
    given = SIZES[name]
    how = mode(f"y = Resize<{options}>(x, , {'k)' if 'k' in given else ', to)'}", *shapes, **given)
    return replace(how, alone=(name != "twice"))


def _of(kind: str, coordinates: str, rule: str = "") -> str:
    rounding = f', nearest_mode="{rule}"' if rule else ""
    return f'mode="{kind}", coordinate_transformation_mode="{coordinates}"{rounding}'


NEAREST = {
    f"nearest, {where}, {rule}, {name}": _resize(_of("nearest", where, rule), name)
    for where, rule, name in product(COORDINATES, ROUNDINGS, SIZES)
}
LINEAR = {
    f"linear, {where}, {name}": _resize(_of("linear", where), name)
    for where, name in product(COORDINATES, SIZES)
}
CUBIC = {
    f"cubic, {where}, twice": _resize(_of("cubic", where), "twice", UNEVEN) for where in COORDINATES
}
ODD = {
    "linear, pytorch_half_pixel, to one column": mode(
        f"y = Resize<{_of('linear', 'pytorch_half_pixel')}>(x, , , to)",
        (1, 3, 10, 10),
        (1, 3, 7, 5),
        to=lambda s: [*s[:2], 5, 1],
    ),
    "nearest, half_pixel, round_prefer_ceil, 20 to 6": mode(
        f"y = Resize<{_of('nearest', 'half_pixel', 'round_prefer_ceil')}>(x, , , to)",
        (1, 3, 20, 5),
        to=[1, 3, 6, 5],
    ),
    "linear, antialias": mode(
        'y = Resize<mode="linear", antialias=1>(x, , k)', EVEN, k=[1.0, 1.0, 0.5, 0.6]
    ),
    "linear, tf_crop_and_resize": mode(
        f"y = Resize<{_of('linear', 'tf_crop_and_resize')}>(x, roi, , to)",
        EVEN,
        roi=[0.0, 0.0, 0.2, 0.1, 1.0, 1.0, 0.8, 0.9],
        to=[1, 4, 5, 4],
    ),
    "linear, keep_aspect_ratio": mode(
        'y = Resize<mode="linear", axes=[2,3], keep_aspect_ratio_policy="not_larger">(x, , , to)',
        EVEN,
        to=[4, 9],
    ),
    "nearest of channels": mode(
        f"y = Resize<{_of('nearest', 'asymmetric', 'floor')}>(x, , k)", EVEN, k=[1.0, 2.0, 1.0, 1.0]
    ),
    "nearest of a row": mode(
        f"y = Resize<{_of('nearest', 'asymmetric', 'floor')}>(x, , k)",
        (1, 4, 8),
        (1, 3, 5),
        k=[1.0, 1.0, 2.0],
    ),
    "linear of a row": mode(
        f"y = Resize<{_of('linear', 'half_pixel')}>(x, , k)",
        (1, 4, 8),
        (1, 3, 5),
        k=[1.0, 1.0, 2.0],
    ),
    "nearest of a volume": mode(
        f"y = Resize<{_of('nearest', 'asymmetric', 'floor')}>(x, , k)",
        (1, 2, 3, 4, 6),
        k=[1.0, 1.0, 2.0, 2.0, 2.0],
    ),
}
RESIZES: dict[str, dict[str, Mode]] = {
    "Resize": {**NEAREST, **LINEAR, **CUBIC, **ODD},
    "Upsample": {"nearest, twice": mode(
        'y = Upsample<mode="nearest">(x, k)', opset=9, k=[1.0, 1.0, 2.0, 2.0]
    )},
}  # fmt: skip
