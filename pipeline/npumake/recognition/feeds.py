"""Normalizations of 8-bit pictures: the model gets (pixel - mean) * scale, in a color order.

`mean` and `scale` are in the order of the model's channels. NORMALIZATIONS lists those that
published models were trained with, given for red, green, blue.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

Colors = Literal["rgb", "bgr", "gray"]
PER_COLOR = 3  # channels that a normalization by color needs
TOLERANCE = 0.02  # of a normalized range: two normalizations within it are the same


@dataclass(frozen=True)
class PixelNormalization:
    """`mean` and `scale`: one number, or one for red, green and blue."""

    name: str
    mean: tuple[float, ...]
    scale: tuple[float, ...]

    @property
    def by_color(self) -> bool:
        return max(len(self.mean), len(self.scale)) > 1

    @property
    def reach(self) -> tuple[float, float]:
        """The least and the greatest value that pixels of 0..255 become."""
        pairs = [(self.mean[n % len(self.mean)], k) for n, k in enumerate(self.scale)]
        pairs += [(m, self.scale[n % len(self.scale)]) for n, m in enumerate(self.mean)]
        ends = [(pixel - m) * k for m, k in pairs for pixel in (0, 255)]
        return min(ends), max(ends)


def _by_std(name: str, mean: tuple[float, ...], std: tuple[float, ...]) -> PixelNormalization:
    """From mean and standard deviation of pixels in 0..1."""
    means = tuple(round(255 * m, 4) for m in mean)
    return PixelNormalization(name, means, tuple(round(1 / (255 * s), 7) for s in std))


RAW = PixelNormalization("0..255", (0.0,), (1.0,))
UNIT = PixelNormalization("0..1", (0.0,), (0.00392157,))
SIGNED = PixelNormalization("-1..1", (127.5,), (0.00784314,))
SSD = PixelNormalization("(x - 127) / 128", (127.0,), (0.0078125,))
MTCNN = PixelNormalization("(x - 127.5) / 128", (127.5,), (0.0078125,))
IMAGENET = _by_std("ImageNet mean and std", (0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
CAFFE = PixelNormalization("ImageNet mean, 0..255", (123.68, 116.779, 103.939), (1.0,))
CLIP = _by_std("CLIP", (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711))
NORMALIZATIONS = (RAW, UNIT, SIGNED, SSD, MTCNN, IMAGENET, CAFFE, CLIP)


@dataclass(frozen=True)
class PictureFeed:
    """A normalization and the color order that the model was trained on."""

    normalization: PixelNormalization
    colors: Colors = "rgb"

    @property
    def mean(self) -> tuple[float, ...]:
        return self._ordered(self.normalization.mean)

    @property
    def scale(self) -> tuple[float, ...]:
        return self._ordered(self.normalization.scale)

    @property
    def words(self) -> str:
        return f"{self.colors}, {self.normalization.name}"

    def _ordered(self, values: tuple[float, ...]) -> tuple[float, ...]:
        return values[::-1] if self.colors == "bgr" else values


def feed(normalization: PixelNormalization, colors: Colors, channels: int) -> PictureFeed:
    """The feed of an input of `channels`; one channel is gray, with one mean and scale."""
    if channels == PER_COLOR:
        return PictureFeed(normalization, colors)
    if not normalization.by_color:
        return PictureFeed(normalization, "gray")
    mean, scale = (sum(v) / len(v) for v in (normalization.mean, normalization.scale))
    return PictureFeed(replace(normalization, mean=(mean,), scale=(scale,)), "gray")


def candidates(channels: int) -> tuple[PictureFeed, ...]:
    """All feeds for an input of `channels`."""
    if channels != PER_COLOR:
        plain = (normalization for normalization in NORMALIZATIONS if not normalization.by_color)
        return tuple(PictureFeed(normalization, "gray") for normalization in plain)
    return tuple(
        PictureFeed(normalization, c) for normalization in NORMALIZATIONS for c in ("rgb", "bgr")
    )


def of_reach(low: float, high: float) -> PixelNormalization | None:
    """The known normalization of pixels to low..high; None if none does."""
    for normalization in NORMALIZATIONS:
        start, end = normalization.reach
        room = TOLERANCE * (end - start)
        if abs(start - low) <= room and abs(end - high) <= room:
            return normalization
    return None
