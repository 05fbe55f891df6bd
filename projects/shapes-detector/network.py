"""YOLOv8-seg at the size of a toy: the layers, their numbers and names are Ultralytics' own.

An image of SIZE pixels gives three maps of cells, 8, 16 and 32 pixels wide. Every cell predicts

    boxes    4 x REG_MAX logits: the distances to left, top, right, bottom, each as a distribution
             over 0 … REG_MAX - 1 cells (DFL)
    scores   one logit per class
    coefs    MASKS numbers that mix the prototypes (MASKS, SIZE/4, SIZE/4) into the shape's mask
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from scenes import CLASSES, SIZE
from torch import Tensor, nn
from torch.nn.functional import silu

REG_MAX, MASKS, STRIDES = 16, 16, (8, 16, 32)
WIDTHS = (12, 20, 32, 48, 56)  # of the maps of stride 2, 4, 8, 16, 32
HEAD, PROTO = 24, 20


class Conv(nn.Module):
    """Convolution, batch normalization, SiLU."""

    def __init__(self, channels: int, filters: int, size: int = 1, stride: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, filters, size, stride, size // 2, bias=False)
        self.bn = nn.BatchNorm2d(filters, eps=1e-3, momentum=0.03)

    def forward(self, x: Tensor) -> Tensor:
        return silu(self.bn(self.conv(x)))


class Bottleneck(nn.Module):
    def __init__(self, channels: int, add: bool) -> None:
        super().__init__()
        self.cv1, self.cv2, self.add = Conv(channels, channels, 3), Conv(channels, channels, 3), add

    def forward(self, x: Tensor) -> Tensor:
        y = self.cv2(self.cv1(x))
        return x + y if self.add else y


class C2f(nn.Module):
    """Half of the channels go through a bottleneck; both halves and its result are mixed."""

    def __init__(self, channels: int, filters: int, add: bool = False) -> None:
        super().__init__()
        self.cv1, self.cv2 = Conv(channels, filters), Conv(filters // 2 * 3, filters)
        self.m = nn.ModuleList([Bottleneck(filters // 2, add)])

    def forward(self, x: Tensor) -> Tensor:
        left, right = self.cv1(x).chunk(2, 1)
        return self.cv2(torch.cat([left, right, self.m[0](right)], 1))


class SPPF(nn.Module):
    """A pyramid of three max pools in a row."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.cv1, self.cv2 = Conv(channels, channels // 2), Conv(channels * 2, channels)
        self.m = nn.MaxPool2d(5, 1, 2)

    def forward(self, x: Tensor) -> Tensor:
        maps = [self.cv1(x)]
        for _ in range(3):
            maps.append(self.m(maps[-1]))
        return self.cv2(torch.cat(maps, 1))


class Proto(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.cv1, self.cv2 = Conv(channels, PROTO, 3), Conv(PROTO, PROTO, 3)
        self.upsample = nn.ConvTranspose2d(PROTO, PROTO, 2, 2)
        self.cv3 = Conv(PROTO, MASKS)

    def forward(self, x: Tensor) -> Tensor:
        return self.cv3(self.cv2(self.upsample(self.cv1(x))))


class Raw(NamedTuple):
    """What the head says of N images and all A cells, before any decoding."""

    boxes: Tensor  # (N, 4 * REG_MAX, A)
    scores: Tensor  # (N, classes, A)
    coefs: Tensor  # (N, MASKS, A)
    protos: Tensor  # (N, MASKS, SIZE / 4, SIZE / 4)


class Segment(nn.Module):
    """Three branches on each of three maps, and the prototypes on the finest."""

    def __init__(self, channels: tuple[int, ...]) -> None:
        super().__init__()

        def branch(outputs: int, inner: int) -> nn.ModuleList:
            return nn.ModuleList(
                nn.Sequential(
                    Conv(c, inner, 3), Conv(inner, inner, 3), nn.Conv2d(inner, outputs, 1)
                )
                for c in channels
            )

        self.cv2, self.cv3 = branch(4 * REG_MAX, HEAD), branch(len(CLASSES), HEAD)
        self.cv4, self.proto = branch(MASKS, MASKS), Proto(channels[0])
        for box, score, stride in zip(self.cv2, self.cv3, STRIDES, strict=True):
            nn.init.constant_(box[-1].bias, 1.0)
            nn.init.constant_(
                score[-1].bias, -(torch.tensor((SIZE / stride) ** 2 / 2).log().item())
            )

    def forward(self, maps: list[Tensor]) -> Raw:
        def cells(branch: nn.ModuleList) -> Tensor:
            return torch.cat([net(x).flatten(2) for net, x in zip(branch, maps, strict=True)], 2)

        return Raw(cells(self.cv2), cells(self.cv3), cells(self.cv4), self.proto(maps[0]))


class Detector(nn.Module):
    """(N, 3, SIZE, SIZE) of pixel / 255 → Raw. `model.<number>` becomes the nodes' names."""

    def __init__(self) -> None:
        super().__init__()
        a, b, c, d, e = WIDTHS
        backbone = [Conv(3, a, 3, 2), Conv(a, b, 3, 2), C2f(b, b, True), Conv(b, c, 3, 2)]
        backbone += [C2f(c, c, True), Conv(c, d, 3, 2), C2f(d, d, True), Conv(d, e, 3, 2)]
        backbone += [C2f(e, e, True), SPPF(e)]
        up = nn.Upsample(scale_factor=2.0, mode="nearest")
        neck = [up, nn.Identity(), C2f(e + d, d), up, nn.Identity(), C2f(d + c, c)]
        neck += [Conv(c, c, 3, 2), nn.Identity(), C2f(c + d, d)]
        neck += [Conv(d, d, 3, 2), nn.Identity(), C2f(d + e, e)]
        self.model = nn.ModuleList([*backbone, *neck, Segment((c, d, e))])

    def forward(self, image: Tensor) -> Raw:
        made: list[Tensor] = []
        for number, layer in enumerate(self.model[:-1]):
            x = made[-1] if made else image
            joined = torch.cat([x, made[JOINED[number]]], 1) if number in JOINED else None
            made.append(layer(x) if joined is None else joined)
        return self.model[-1]([made[15], made[18], made[21]])


JOINED = {11: 6, 14: 4, 17: 12, 20: 9}  # a Concat by its number: with which earlier layer
