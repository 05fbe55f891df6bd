"""Inputs that the board may have had instead: the sample in another form, or another sample."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from npumake.debug.dumps.inputs import DumpFeeds, numbered
from npumake.engine.ort import Feeds

MAX_SHIFT = 3  # pixels
COLORS = (1, 3, 4)  # channels of a picture
FACTORS = (0.5, 2.0, 0.25, 0.75, 1.5, 0.8, 1.25)  # of brightness
GAMMAS = (1 / 2.2, 2.2, 1 / 1.8, 1.8, 1 / 2.4, 2.4)
Way = Callable[[np.ndarray], np.ndarray]
Change = tuple[str, str, Way]
PictureWay = Callable[[np.ndarray, tuple[int, int]], np.ndarray]


def ways_to_feed(feeding: DumpFeeds) -> Iterator[tuple[str, Feeds]]:
    """`KIND:sentence` and feeds: the same sample preprocessed differently, then other samples, then
    what has more parameters."""
    yield from _changed(feeding, INPUT_CHANGES)
    for name, feeds in numbered(feeding.samples):
        if name != feeding.name:
            yield f"other_input:other input: the board was fed {name}, ours {feeding.name}", feeds
    yield from _changed(feeding, list(_brightness(feeding)))
    yield from _changed(feeding, list(_shifts()))
    yield from _changed(feeding, list(_curves(feeding)))


def _changed(feeding: DumpFeeds, changes: Sequence[Change]) -> Iterator[tuple[str, Feeds]]:
    for kind, words, way in changes:
        turned = {name: way(x) for name, x in feeding.feeds.items()}
        fits = all(x.shape == feeding.feeds[name].shape for name, x in turned.items())
        if fits and any(not np.array_equal(x, feeding.feeds[n]) for n, x in turned.items()):
            yield (
                f"{kind}:{words}",
                {n: _cast(x, feeding.feeds[n].dtype) for n, x in turned.items()},
            )


def _cast(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Integers are rounded and saturate."""
    if dtype.kind in "iu" and x.dtype.kind == "f":
        x = np.clip(np.rint(x), np.iinfo(dtype).min, np.iinfo(dtype).max)
    return np.ascontiguousarray(x, dtype)


def picture_axes(x: np.ndarray) -> tuple[int, int] | None:
    """Height and width, in either layout; None for an input without both."""
    if x.ndim != 4:
        return None
    return (1, 2) if x.shape[3] in COLORS and x.shape[1] not in COLORS else (2, 3)


def _picture(way: PictureWay) -> Way:
    """The change of a picture by its axes; other inputs stay."""

    def changed(x: np.ndarray) -> np.ndarray:
        axes = picture_axes(x)
        return x if axes is None else way(x, axes)

    return changed


def _reversed_channels(x: np.ndarray) -> np.ndarray:
    axes = [axis for axis in range(1, x.ndim) if x.shape[axis] == 3]
    return np.flip(x, axes[0]) if axes else x


def _permuted(order: tuple[int, ...], x: np.ndarray) -> np.ndarray:
    axes = [axis for axis in range(1, x.ndim) if x.shape[axis] == 3]
    return np.take(x, order, axes[0]) if axes else x


def _exchanged(x: np.ndarray) -> np.ndarray:
    """Height and width exchanged, in either layout."""
    if x.ndim != 4:
        return x
    first = 2 if x.shape[1] <= x.shape[3] else 1
    return np.swapaxes(x, first, first + 1)


def _reinterpreted(x: np.ndarray) -> np.ndarray:
    """The memory of channels last read as channels first, or vice versa."""
    if x.ndim != 4:
        return x
    order = (0, 2, 3, 1) if x.shape[1] <= x.shape[3] else (0, 3, 1, 2)
    return np.ascontiguousarray(x.transpose(order)).reshape(x.shape)


def _inverted(x: np.ndarray) -> np.ndarray:
    return np.asarray(float(np.max(x)) + float(np.min(x)) - x.astype(np.float64))


def _gray(x: np.ndarray, axes: tuple[int, int]) -> np.ndarray:
    colors = 6 - sum(axes)
    if x.shape[colors] != 3:
        return x
    return np.broadcast_to(x.mean(axis=colors, keepdims=True, dtype=np.float64), x.shape)


def _twice(x: np.ndarray, axes: tuple[int, int]) -> np.ndarray:
    """Every pixel twice, from the first corner on."""
    large = np.repeat(np.repeat(x, 2, axes[0]), 2, axes[1])
    return large[tuple(slice(n) for n in x.shape)]


def _brightness(feeding: DumpFeeds) -> Iterator[Change]:
    """Black and white are the lowest and highest values of all samples, or of each channel's."""
    every = [feeds for _name, feeds in numbered(feeding.samples)] or [feeding.feeds]
    for factor in FACTORS:
        words = f"brightness: the board was fed the picture {factor:g} times as bright"
        for per_channel in (False, True):
            yield "brightness", words, _times(factor, every, per_channel)
    for share in (0.1, -0.1, 0.25, -0.25):
        words = f"brightness: the board was fed the picture {share:+.0%} of its range brighter"
        yield "brightness", words, _plus(share, every)


def _curves(feeding: DumpFeeds) -> Iterator[Change]:
    """Gammas, between the lowest and the highest value."""
    every = [feeds for _name, feeds in numbered(feeding.samples)] or [feeding.feeds]
    for power in GAMMAS:
        for ends in (every, []):
            words = f"gamma: the board was fed the picture with a gamma of {power:.3g}"
            yield "gamma", words, _to_the(power, ends)


def _to_the(power: float, every: Sequence[Feeds]) -> Way:
    def changed(x: np.ndarray) -> np.ndarray:
        low, high = _ends(x, every, False)
        share = (x.astype(np.float64) - low) / np.maximum(high - low, 1e-12)
        return np.asarray(low + np.clip(share, 0.0, 1.0) ** power * (high - low))

    return changed


def _times(factor: float, every: Sequence[Feeds], per_channel: bool) -> Way:
    def changed(x: np.ndarray) -> np.ndarray:
        low, high = _ends(x, every, per_channel)
        return np.minimum(low + (x.astype(np.float64) - low) * factor, high)

    return changed


def _plus(share: float, every: Sequence[Feeds]) -> Way:
    def changed(x: np.ndarray) -> np.ndarray:
        low, high = _ends(x, every, False)
        return np.clip(x.astype(np.float64) + share * (high - low), low, high)

    return changed


def _ends(x: np.ndarray, every: Sequence[Feeds], per_channel: bool) -> tuple[np.ndarray, ...]:
    """The lowest and the highest value of all feeds like this one."""
    alike = [y for feeds in every for y in feeds.values() if y.shape == x.shape]
    stacked = np.stack([x, *alike]).astype(np.float64)
    axes = picture_axes(x) if per_channel else None
    if axes is None:
        return stacked.min(keepdims=True)[0], stacked.max(keepdims=True)[0]
    over = (0, 1, *(axis + 1 for axis in axes))
    return stacked.min(axis=over, keepdims=True)[0], stacked.max(axis=over, keepdims=True)[0]


def _shifts() -> Iterator[Change]:
    for by in sorted(range(-MAX_SHIFT, MAX_SHIFT + 1), key=abs):
        for move in ((by, 0), (0, by), (by, by), (by, -by)) if by else ():
            words = f"the board was fed the picture {move[0]:+d} rows and {move[1]:+d} columns away"
            yield "shift", f"shift: {words}", _moved(move)


def _moved(move: tuple[int, int]) -> Way:
    return _picture(lambda x, axes: np.roll(x, move, axes))


TURNS: tuple[tuple[str, PictureWay], ...] = (
    ("rotated by 180 degrees", np.flip),
    ("rotated by 90 degrees to the left", lambda x, axes: np.rot90(x, 1, axes)),
    ("rotated by 90 degrees to the right", lambda x, axes: np.rot90(x, 3, axes)),
    ("mirrored left to right", lambda x, axes: np.flip(x, axes[1])),
    ("mirrored top to bottom", lambda x, axes: np.flip(x, axes[0])),
)
INPUT_CHANGES: tuple[Change, ...] = (
    (
        "channel_order",
        "channel order: the board was fed with the channels reversed (RGB and BGR)",
        _reversed_channels,
    ),
    ("layout", "layout: the board was fed height and width exchanged", _exchanged),
    ("layout", "layout: the board was fed the other memory layout (NCHW and NHWC)", _reinterpreted),
    ("scale", "scale: the board was fed the sample divided by 255", lambda x: x / 255.0),
    ("scale", "scale: the board was fed the sample times 255", lambda x: x * 255.0),
    ("zero_point", "zero point: the board was fed the sample plus 128", lambda x: x + 128.0),
    ("zero_point", "zero point: the board was fed the sample minus 128", lambda x: x - 128.0),
    *(
        ("orientation", f"orientation: the board was fed the picture {words}", _picture(way))
        for words, way in TURNS
    ),
    ("brightness", "brightness: the board was fed the picture inverted", _inverted),
    *(
        (
            "channel_order",
            f"channel order: the board was fed the channels in the order {', '.join(map(str, o))}",
            partial(_permuted, o),
        )
        for o in ((0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1))
    ),
    ("gray", "gray: the board was fed the picture without its colors", _picture(_gray)),
    (
        "zoom",
        "zoom: the board was fed the picture twice as large, about its corner",
        _picture(_twice),
    ),
)
