"""A small network and its samples, as each vendor's tool wants them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

SAMPLES = 8


def model(fed: str, side: int, first: str, last: tuple[tuple[str, str], ...]) -> bytes:
    """A small network: `fed` → `first` → conv1 relu1 conv2 add1 pool flat fc6 → `last`, each a
    (name, operator) that changes nothing of a shape."""
    rng = np.random.default_rng(0)
    shapes = {"w1": (8, 3, 3, 3), "b1": (8,), "w2": (8, 8, 3, 3), "w3": (8, 4), "b3": (4,)}
    weights = [
        numpy_helper.from_array(rng.normal(0, 0.3, shape).astype(np.float32), name)
        for name, shape in shapes.items()
    ]
    chain = [
        helper.make_node("Identity", [fed], ["x0"], first),
        helper.make_node("Conv", ["x0", "w1", "b1"], ["x1"], "conv1", pads=[1] * 4, strides=[2, 2]),
        helper.make_node("Relu", ["x1"], ["x2"], "relu1"),
        helper.make_node("Conv", ["x2", "w2"], ["x3"], "conv2", pads=[1] * 4),
        helper.make_node("Add", ["x3", "x2"], ["x4"], "add1"),
        helper.make_node("GlobalAveragePool", ["x4"], ["x5"], "pool"),
        helper.make_node("Flatten", ["x5"], ["x6"], "flat"),
        helper.make_node("Gemm", ["x6", "w3", "b3"], ["t0"], "fc6"),
        *(
            helper.make_node(operator, [f"t{n}"], [f"t{n + 1}"], name)
            for n, (name, operator) in enumerate(last)
        ),
    ]
    feeds = [helper.make_tensor_value_info(fed, TensorProto.FLOAT, [1, 3, side, side])]
    made = [helper.make_tensor_value_info(f"t{len(last)}", TensorProto.FLOAT, [1, 4])]
    graph = helper.make_graph(chain, "net", feeds, made, weights)
    opsets = [helper.make_opsetid("", 11)]
    return bytes(helper.make_model(graph, opset_imports=opsets, ir_version=7).SerializeToString())


def pixels(side: int) -> list[np.ndarray]:
    """CHW, 0..255, each with its own brightness."""
    rng = np.random.default_rng(1)
    return [rng.integers(0, 60 + 20 * n, (3, side, side)) for n in range(SAMPLES)]


def write_samples(folder: Path, side: int) -> None:
    """The same pictures as each tool wants them."""
    for name in ("calibration_data", "normalized", "pictures", "sample"):
        (folder / name).mkdir(parents=True)
    for n, picture in enumerate(pixels(side)):
        picture.astype(np.float32).tofile(folder / "calibration_data" / f"{n}.bgr")
        mean = np.array([123.675, 116.28, 103.53]).reshape(3, 1, 1)
        scale = np.array([0.01712, 0.0175, 0.01743]).reshape(3, 1, 1)
        np.save(folder / "normalized" / f"{n}.npy", ((picture - mean) * scale).astype(np.float32))
        image = Image.fromarray(picture.transpose(1, 2, 0).astype(np.uint8))
        image.save(folder / "pictures" / f"{n}.png")
        image.save(folder / "sample" / f"{n}_{side}x{side}.jpg")
