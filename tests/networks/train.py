"""Trains three small networks of the kinds that plain int8 hurts, on the data of projects/digits.

    python tests/networks/train.py         (needs scikit-learn, onnx and torch==2.13.0)

    repvgg.onnx        3x3, 1x1 and identity branches, each with its BatchNormalization, added up
                       and then made one 3x3 Conv: its channels are of very different sizes
    mobilenetv3.onnx   inverted residuals, depthwise, with squeeze-and-excitation and hard-swish
    transformer.onnx   two pre-norm blocks of attention and a two-layer perceptron, over 16 patches

Each takes (1, 1, 8, 8) of pixel / 16 and gives 10 logits. Seeded, on one thread.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, hardswish, pad, relu, scaled_dot_product_attention

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "projects" / "digits"))
from split import split  # noqa: E402

SEED = 0
EPOCHS, BATCH = 60, 32
WHITE = 16.0  # the brightest pixel


def conv_and_bn(inputs: int, outputs: int, size: int, stride: int = 1, groups: int = 1):
    conv = nn.Conv2d(inputs, outputs, size, stride, size // 2, groups=groups, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(outputs))


class RepBlock(nn.Module):
    """relu(bn(conv3x3(x)) + bn(conv1x1(x)) + bn(x)), the last where the shapes allow it."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.branches = nn.ModuleList(conv_and_bn(inputs, outputs, n, stride) for n in (3, 1))
        self.identity = nn.BatchNorm2d(inputs) if (inputs, stride) == (outputs, 1) else None

    def forward(self, x: Tensor) -> Tensor:
        y = sum(branch(x) for branch in self.branches)
        return relu(y if self.identity is None else y + self.identity(x))

    def merged(self) -> nn.Module:
        """The same as one 3x3 Conv and ReLU."""
        conv = self.branches[0][0]
        one = nn.Conv2d(conv.in_channels, conv.out_channels, 3, conv.stride, 1)
        with torch.no_grad():
            weight, bias = torch.zeros_like(conv.weight), torch.zeros(conv.out_channels)
            for made, bn in self.branches:
                gain, shift = affine(bn)
                margin = (3 - made.kernel_size[0]) // 2
                weight += pad(made.weight * gain[:, None, None, None], (margin,) * 4)
                bias += shift
            if self.identity is not None:
                gain, shift = affine(self.identity)
                weight[range(len(gain)), range(len(gain)), 1, 1] += gain
                bias += shift
            one.weight.copy_(weight)
            one.bias.copy_(bias)
        return nn.Sequential(one, nn.ReLU())


def affine(bn: nn.BatchNorm2d) -> tuple[Tensor, Tensor]:
    gain = bn.weight / torch.sqrt(bn.running_var + bn.eps)
    return gain, bn.bias - gain * bn.running_mean


class RepVGG(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        sizes = [(1, 16, 1), (16, 16, 1), (16, 32, 2), (32, 32, 1), (32, 32, 1)]
        self.blocks = nn.Sequential(*(RepBlock(*size) for size in sizes))
        self.classifier = nn.Linear(32, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.blocks(x).mean((2, 3)))

    def merged(self) -> RepVGG:
        self.blocks = nn.Sequential(*(block.merged() for block in self.blocks))
        return self


class Inverted(nn.Module):
    def __init__(self, inputs: int, wide: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.expand = conv_and_bn(inputs, wide, 1)
        self.depthwise = conv_and_bn(wide, wide, 3, stride, wide)
        self.squeeze, self.excite = nn.Conv2d(wide, wide // 4, 1), nn.Conv2d(wide // 4, wide, 1)
        self.project = conv_and_bn(wide, outputs, 1)
        self.residual = (inputs, stride) == (outputs, 1)

    def forward(self, x: Tensor) -> Tensor:
        y = hardswish(self.depthwise(hardswish(self.expand(x))))
        gate = self.excite(relu(self.squeeze(y.mean((2, 3), keepdim=True))))
        y = self.project(y * nn.functional.hardsigmoid(gate))
        return x + y if self.residual else y


class MobileNetV3(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = conv_and_bn(1, 16, 3)
        sizes = [(16, 48, 16, 1), (16, 48, 24, 2), (24, 72, 24, 1), (24, 72, 24, 1)]
        self.blocks = nn.Sequential(*(Inverted(*size) for size in sizes))
        self.head = conv_and_bn(24, 64, 1)
        self.classifier = nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = hardswish(self.head(self.blocks(hardswish(self.stem(x)))))
        return self.classifier(x.mean((2, 3)))


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm1(x)
        split_heads = (len(x), x.shape[1], self.heads, -1)
        q, k, v = (f(y).reshape(split_heads).transpose(1, 2) for f in self.projections)
        attended = scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(x.shape)
        x = x + self.out(attended)
        return x + self.down(relu(self.up(self.norm2(x))))

    @property
    def projections(self) -> tuple[nn.Linear, ...]:
        return self.query, self.key, self.value


class Transformer(nn.Module):
    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.patches = nn.Conv2d(1, width, 2, 2)
        self.places = nn.Parameter(0.02 * torch.randn(1, 16, width))
        self.blocks = nn.Sequential(*(Block(width, 4) for _ in range(2)))
        self.norm = nn.LayerNorm(width)
        self.classifier = nn.Linear(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2) + self.places
        return self.classifier(self.norm(self.blocks(x)).mean(1))


def trained(model: nn.Module, rate: float, pixels: Tensor, labels: Tensor) -> nn.Module:
    """The model after EPOCHS of `pixels` (N, 1, 8, 8), each image moved by up to one pixel."""
    optimizer = torch.optim.AdamW(model.train().parameters(), rate, weight_decay=1e-2)
    steps = EPOCHS * (len(pixels) // BATCH)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for rows in batches(len(pixels)):
        loss = cross_entropy(model(moved(pixels[rows]) / WHITE), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return model.eval()


def batches(count: int) -> Iterator[Tensor]:
    for _ in range(EPOCHS):
        yield from torch.randperm(count)[: count // BATCH * BATCH].reshape(-1, BATCH)


def moved(pixels: Tensor) -> Tensor:
    corner = torch.randint(0, 3, (2, len(pixels), 1, 1))
    row, column = corner[0] + torch.arange(8)[:, None], corner[1] + torch.arange(8)
    image = torch.arange(len(pixels))[:, None, None]
    return pad(pixels, (1, 1, 1, 1))[image, 0, row, column][:, None]


def main() -> None:
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    digits = load_digits()
    images, labels = digits.images.astype(np.float32)[:, None], digits.target
    parts = split(labels)
    learn, test = (torch.from_numpy(images[rows]) for rows in (parts.train, parts.test))
    kinds = {"repvgg": (RepVGG, 1e-2), "mobilenetv3": (MobileNetV3, 1e-2)}
    for name, (kind, rate) in (kinds | {"transformer": (Transformer, 3e-3)}).items():
        torch.manual_seed(SEED)
        model = trained(kind(), rate, learn, torch.from_numpy(labels[parts.train]).long())
        with torch.no_grad():
            right = model(test / WHITE).argmax(1).numpy() == labels[parts.test]
        model = model.merged() if name == "repvgg" else model
        file, names = HERE / f"{name}.onnx", {"input_names": ["image"], "output_names": ["logits"]}
        torch.onnx.export(model, (test[:1],), file, opset_version=17, dynamo=False, **names)
        sys.stdout.write(f"{name}: top-1 {100 * right.mean():.2f} %, {file.stat().st_size} bytes\n")


if __name__ == "__main__":
    main()
