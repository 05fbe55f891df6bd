"""Trains the digits model and writes everything this project is made from.

    python projects/digits/train.py         (needs scikit-learn, onnx and torch==2.13.0)

The data are the 1,797 handwritten digits that scikit-learn bundles: 8x8 pixels from 0 to 16.
`split.py` parts them with a fixed seed, each class in equal shares, into 600 held-out images for
the test, 64 for calibration and 1,133 to learn from. No image is in two parts; one person's
handwriting may be. Next to this file the script writes

    model.onnx        a CNN with two residual blocks; it expects one image of pixel / 16
    samples/*.npy     the calibration images, uint8 (1, 1, 8, 8), pixels as they are
    test_images.npy   uint8 (600, 1, 8, 8)
    test_labels.npy   uint8 (600,)

and then prints the sizes of the parts and the top-1 of the file `model.onnx` on the test. It is
seeded and runs on one thread: the same machine writes the same bytes again.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from sklearn.datasets import load_digits
from split import split
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, pad, relu6

HERE = Path(__file__).parent
SEED = 0
EPOCHS, BATCH = 60, 32
LEARNING_RATE, WEIGHT_DECAY = 1e-2, 1e-2
WHITE = 16.0  # the brightest pixel


class Digits(nn.Module):
    """(N, 1, 8, 8) of pixel / 16 → (N, 10) logits. Attribute names become node names."""

    def __init__(self) -> None:
        super().__init__()
        self.stem_conv, self.stem_bn = conv_and_bn(1, 16, 3)
        self.block1_depthwise, self.block1_depthwise_bn = conv_and_bn(16, 16, 3, groups=16)
        self.block1_pointwise, self.block1_pointwise_bn = conv_and_bn(16, 16, 1)
        self.down_conv, self.down_bn = conv_and_bn(16, 32, 3, stride=2)
        self.block2_depthwise, self.block2_depthwise_bn = conv_and_bn(32, 32, 3, groups=32)
        self.block2_pointwise, self.block2_pointwise_bn = conv_and_bn(32, 32, 1)
        self.classifier = nn.Linear(32, 10)

    def forward(self, image: Tensor) -> Tensor:
        x = relu6(self.stem_bn(self.stem_conv(image)))
        y = relu6(self.block1_depthwise_bn(self.block1_depthwise(x)))
        x = x + self.block1_pointwise_bn(self.block1_pointwise(y))
        x = relu6(self.down_bn(self.down_conv(x)))
        y = relu6(self.block2_depthwise_bn(self.block2_depthwise(x)))
        x = x + self.block2_pointwise_bn(self.block2_pointwise(y))
        return self.classifier(x.mean((2, 3)))


def conv_and_bn(
    channels: int, filters: int, size: int, stride: int = 1, groups: int = 1
) -> tuple[nn.Conv2d, nn.BatchNorm2d]:
    conv = nn.Conv2d(channels, filters, size, stride, size // 2, groups=groups, bias=False)
    return conv, nn.BatchNorm2d(filters)


def trained(pixels: Tensor, labels: Tensor) -> Digits:
    """A model that has seen `pixels` (N, 1, 8, 8) for EPOCHS, each time moved by up to one."""
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    model = Digits().train()
    optimizer = torch.optim.AdamW(model.parameters(), LEARNING_RATE, weight_decay=WEIGHT_DECAY)
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
    """EPOCHS times all rows in a new order; the few that do not fill a batch wait for the next."""
    for _ in range(EPOCHS):
        yield from torch.randperm(count)[: count // BATCH * BATCH].reshape(-1, BATCH)


def moved(pixels: Tensor) -> Tensor:
    """Each image (N, 1, 8, 8) one pixel up or down and left or right, or not; black moves in."""
    corner = torch.randint(0, 3, (2, len(pixels), 1, 1))
    row, column = corner[0] + torch.arange(8)[:, None], corner[1] + torch.arange(8)
    image = torch.arange(len(pixels))[:, None, None]
    return pad(pixels, (1, 1, 1, 1))[image, 0, row, column][:, None]


def as_onnx(model: Digits) -> onnx.ModelProto:
    """`Digits.forward` for one image as an ONNX graph; each node is named as what it gives."""
    nodes: list[onnx.NodeProto] = []

    def node(op: str, name: str, *inputs: str, **attributes: Any) -> str:
        nodes.append(helper.make_node(op, inputs, [name], name, **attributes))
        return name

    def conv_bn(x: str, conv: str, bn: str, **attributes: Any) -> str:
        y = node("Conv", conv, x, f"{conv}_weight", **attributes)
        statistics = ("weight", "bias", "running_mean", "running_var")
        return node("BatchNormalization", bn, y, *(f"{bn}_{each}" for each in statistics))

    def residual(x: str, block: str, channels: int) -> str:
        depthwise, pointwise = f"{block}_depthwise", f"{block}_pointwise"
        y = conv_bn(x, depthwise, f"{depthwise}_bn", pads=[1, 1, 1, 1], group=channels)
        y = node("Clip", f"{block}_relu6", y, "zero", "six")
        return node("Add", f"{block}_add", x, conv_bn(y, pointwise, f"{pointwise}_bn"))

    x = conv_bn("image", "stem_conv", "stem_bn", pads=[1, 1, 1, 1])
    x = residual(node("Clip", "stem_relu6", x, "zero", "six"), "block1", 16)
    x = conv_bn(x, "down_conv", "down_bn", pads=[1, 1, 1, 1], strides=[2, 2])
    x = residual(node("Clip", "down_relu6", x, "zero", "six"), "block2", 32)
    x = node("Flatten", "flatten", node("GlobalAveragePool", "pool", x))
    node("Gemm", "logits", x, "classifier_weight", "classifier_bias", transB=1)

    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 1, 8, 8])
    logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, 10])
    graph = helper.make_graph(nodes, "digits", [image], [logits], weights(model))
    return helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)])


def weights(model: Digits) -> list[onnx.TensorProto]:
    """What the model learned, and the two bounds of ReLU6; `stem_conv.weight` gets a `_`."""
    arrays = {name.replace(".", "_"): value.numpy() for name, value in model.state_dict().items()}
    arrays |= {"zero": np.float32(0), "six": np.float32(6)}
    return [
        numpy_helper.from_array(np.asarray(array), name)
        for name, array in arrays.items()
        if array.dtype == np.float32  # not BatchNorm's count of batches
    ]


def top1(model: onnx.ModelProto, images: NDArray[np.uint8], labels: NDArray[np.uint8]) -> float:
    """Percent of `images` (N, 1, 8, 8), one at a time, whose largest logit is its label's."""
    run = ReferenceEvaluator(model).run
    logits: list[Any] = [run(None, {"image": image[None] / np.float32(WHITE)}) for image in images]
    return 100 * float(np.mean(np.argmax(logits, axis=-1).ravel() == labels))


def main() -> None:
    digits = load_digits()
    images, labels = digits.images.astype(np.uint8)[:, None], digits.target.astype(np.uint8)
    parts = split(labels)
    (HERE / "samples").mkdir(exist_ok=True)
    for number, row in enumerate(parts.calibration):
        np.save(HERE / f"samples/{number:04}.npy", images[[row]])
    np.save(HERE / "test_images.npy", images[parts.test])
    np.save(HERE / "test_labels.npy", labels[parts.test])

    pixels = torch.from_numpy(images[parts.train]).float()
    model = as_onnx(trained(pixels, torch.from_numpy(labels[parts.train]).long()))
    onnx.checker.check_model(model, full_check=True)
    (HERE / "model.onnx").write_bytes(model.SerializeToString(deterministic=True))
    print(", ".join(f"{name} {len(rows)}" for name, rows in parts._asdict().items()))
    print(f"float top-1 on the test: {top1(model, images[parts.test], labels[parts.test]):.2f} %")


if __name__ == "__main__":
    main()
