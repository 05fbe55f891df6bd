"""Detectors: the layers of DETR and RT-DETR, the heads of YOLO11 and YOLOv10."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from blocks.attention import attention, feed_forward
from blocks.net import BRANCH, Block, Drawing, Net, block, maps, stream

LEVELS = ((80, 64), (40, 128), (20, 256))  # side and channels of a YOLO at 640
ANCHORS = 8400


def _post_norm(net: Net, x: str, y: str) -> str:
    """Without outliers, as behind each sum of DETR."""
    held = net.constant(net.rng.uniform(0.6, 1.2, 256)), net.bias(256)
    return net.node("LayerNormalization", net.node("Add", x, y), *held, axis=-1)


def detr_encoder() -> Block:
    """Two layers over 20x20 positions of 256 channels; positions are added to query and key."""
    net = Net(11)
    x = net.input("tokens", (1, 400, 256))
    positions = net.constant(np.sin(net.rng.uniform(0, 50, (1, 400, 256))))
    for _ in range(2):
        q = net.node("Add", x, positions)
        x = _post_norm(net, x, attention(net, (q, q, x), (400, 400), 256, 8))
        x = _post_norm(net, x, feed_forward(net, x, 256, 2048, "Relu"))
    return block(net.model(memory=x), {"tokens": stream(1, 400, 256)})


def detr_decoder() -> Block:
    """A layer of 100 queries over 400 positions, with the heads of classes and boxes."""
    net = Net(12)
    memory = net.input("memory", (1, 400, 256))
    keys = net.node("Add", memory, net.constant(np.sin(net.rng.uniform(0, 50, (1, 400, 256)))))
    asked = net.constant(net.rng.normal(size=(1, 100, 256)))
    x = net.constant(np.zeros((1, 100, 256)))
    for _ in range(2):
        q = net.node("Add", x, asked)
        x = _post_norm(net, x, attention(net, (q, q, x), (100, 100), 256, 8))
        q = net.node("Add", x, asked)
        x = _post_norm(net, x, attention(net, (q, keys, memory), (100, 400), 256, 8))
        x = _post_norm(net, x, feed_forward(net, x, 256, 2048, "Relu"))
    y = net.node("Relu", net.linear(x, 256, 256, 1.4))
    boxes = net.node("Sigmoid", net.linear(net.node("Relu", net.linear(y, 256, 256)), 256, 4))
    model = net.model(logits=net.linear(x, 256, 92), boxes=boxes)
    return block(model, {"memory": stream(1, 400, 256)})


def _deformable(net: Net, x: str, reference: str, memory: str, sides: Sequence[int]) -> str:
    """Eight heads of four points on each of three maps, by GridSample (RT-DETR at opset 16)."""
    count, levels, points = 8, len(sides), 4
    value = net.linear(memory, 256, 256)
    shifts = net.linear(x, 256, count * levels * points * 2, 0.3)
    shifts = net.reshape(shifts, 1, 300, count, levels * points, 2)
    weights = net.reshape(net.linear(x, 256, count * levels * points), 1, 300, count, 12)
    weights = net.node("Softmax", weights, axis=-1)
    size = net.slice(reference, 2, 4, -1)
    shifts = net.scaled(net.node("Mul", shifts, size), 0.5 / points)
    places = net.node("Add", net.slice(reference, 0, 2, -1), shifts)
    grid = net.node("Sub", net.scaled(places, 2.0), net.constant(1.0))
    sampled, start = [], 0
    for level, side in enumerate(sides):
        part = net.slice(value, start, start + side**2, 1)
        part = net.reshape(net.transpose(part, 0, 2, 1), count, 32, side, side)
        at = net.transpose(net.slice(grid, level * points, (level + 1) * points, 3), 0, 2, 1, 3, 4)
        at = net.reshape(at, count, 300, points, 2)
        more = {"mode": "bilinear", "padding_mode": "zeros", "align_corners": 0}
        sampled.append(net.node("GridSample", part, at, **more))
        start += side**2
    whole = net.node("Concat", *sampled, axis=-1)
    weights = net.reshape(net.transpose(weights, 0, 2, 1, 3), count, 1, 300, 12)
    y = net.node("ReduceSum", net.node("Mul", whole, weights), net.integers(-1), keepdims=0)
    y = net.transpose(net.reshape(y, 1, 256, 300), 0, 2, 1)
    return net.linear(y, 256, 256, BRANCH)


def rtdetr_decoder() -> Block:
    """Two layers of 300 queries: self-attention, deformable attention on maps of 40, 20 and 10."""
    net = Net(13, 16)
    sides = (40, 20, 10)
    places = sum(side**2 for side in sides)
    memory = net.input("memory", (1, places, 256))
    x = net.input("queries", (1, 300, 256))
    boxes = net.input("boxes", (1, 300, 4))
    for _ in range(2):
        reference = net.reshape(boxes, 1, 300, 1, 1, 4)
        asked = net.linear(net.node("Relu", net.linear(boxes, 4, 512, 2.0)), 512, 256)
        q = net.node("Add", x, asked)
        x = _spelled_norm(net, net.node("Add", x, attention(net, (q, q, x), (300, 300), 256, 8)))
        y = _deformable(net, net.node("Add", x, asked), reference, memory, sides)
        x = _spelled_norm(net, net.node("Add", x, y))
        x = _spelled_norm(net, net.node("Add", x, feed_forward(net, x, 256, 1024, "Relu")))
        boxes = _refined(net, x, boxes)
    scores = net.node("Sigmoid", net.linear(x, 256, 80))
    drawings = {
        "memory": stream(1, places, 256),
        "queries": stream(1, 300, 256),
        "boxes": lambda rng: rng.uniform(0.1, 0.8, (1, 300, 4)).astype(np.float32),
    }
    return block(net.model(scores=scores, boxes_out=boxes), drawings)


def _spelled_norm(net: Net, x: str) -> str:
    """As opset 16 spells it."""
    centred = net.node("Sub", x, net.node("ReduceMean", x, axes=[-1]))
    variance = net.node("ReduceMean", net.node("Pow", centred, net.constant(2.0)), axes=[-1])
    root = net.node("Sqrt", net.node("Add", variance, net.constant(1e-5)))
    y = net.node("Mul", net.node("Div", centred, root), net.gamma(256))
    return net.node("Add", y, net.bias(256))


def _refined(net: Net, x: str, boxes: str) -> str:
    """sigmoid(delta + logit(boxes)), with the logit of RT-DETR: log(clip(b) / clip(1 - b))."""
    delta = net.linear(net.node("Relu", net.linear(x, 256, 256)), 256, 4, 0.3)
    least, one = net.constant(1e-5), net.constant(1.0)
    inside = net.node("Clip", boxes, net.constant(0.0), one)
    up = net.node("Clip", inside, least)
    down = net.node("Clip", net.node("Sub", one, inside), least)
    logit = net.node("Log", net.node("Div", up, down))
    return net.node("Sigmoid", net.node("Add", delta, logit))


def _anchors() -> tuple[np.ndarray, np.ndarray]:
    """Centres (1, 2, 8400) and strides (1, 8400)."""
    centres, strides = [], []
    for side, _ in LEVELS:
        y, x = np.meshgrid(np.arange(side) + 0.5, np.arange(side) + 0.5, indexing="ij")
        centres.append(np.stack([x.ravel(), y.ravel()]))
        strides.append(np.full(side**2, 640 / side))
    return np.concatenate(centres, 1)[None], np.concatenate(strides)[None]


def _head(net: Net) -> tuple[str, str]:
    """Boxes (1, 4, 8400) as corners' distances decoded, and scores (1, 80, 8400)."""
    made = []
    for level, (side, channels) in enumerate(LEVELS):
        x = net.input(f"p{level + 3}", (1, channels, side, side))
        box = net.conv_silu(net.conv_silu(x, channels, 64, 3), 64, 64, 3)
        cls = net.conv_silu(x, channels, channels, 3, group=channels)
        cls = net.conv_silu(cls, channels, 80)
        cls = net.conv_silu(net.conv_silu(cls, 80, 80, 3, group=80), 80, 80)
        weight = net.weight(80, 80, 1, 1, fan=80, gain=0.6)
        cls = net.node("Conv", cls, weight, net.constant(net.rng.normal(-4, 1, 80)))
        joined = net.node("Concat", net.conv(box, 64, 64, gain=2.0), cls, axis=1)
        made.append(net.reshape(joined, 1, 144, -1))
    whole = net.node("Concat", *made, axis=2)
    box, cls = net.several("Split", [whole, net.integers(64, 80)], 2, axis=1)
    parts = net.transpose(net.reshape(box, 1, 4, 16, ANCHORS), 0, 2, 1, 3)
    bins = net.constant(np.arange(16.0).reshape(1, 16, 1, 1))
    distance = net.node("Conv", net.node("Softmax", parts, axis=1), bins, kernel_shape=[1, 1])
    return net.reshape(distance, 1, 4, ANCHORS), net.node("Sigmoid", cls)


def _pyramid() -> dict[str, Drawing]:
    return {f"p{at + 3}": maps(1, c, side, side) for at, (side, c) in enumerate(LEVELS)}


def yolo11_head() -> Block:
    """The head of YOLO11n at 640: boxes by their bins, 8400 x 84 in one output."""
    net = Net(14)
    distance, scores = _head(net)
    centres, strides = _anchors()
    low, high = net.slice(distance, 0, 2, 1), net.slice(distance, 2, 4, 1)
    first = net.node("Sub", net.constant(centres), low)
    last = net.node("Add", net.constant(centres), high)
    middle = net.node("Div", net.node("Add", first, last), net.constant(2.0))
    boxes = net.node("Concat", middle, net.node("Sub", last, first), axis=1)
    boxes = net.node("Mul", boxes, net.constant(strides))
    model = net.model(output0=net.node("Concat", boxes, scores, axis=1))
    return block(model, _pyramid(), compared=_boxes_and_scores)


def _boxes_and_scores(outputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Pixels and probabilities share a tensor, and each has its own error."""
    (whole,) = outputs
    return [whole[:, :4], whole[:, 4:]]


def yolov10_head() -> Block:
    """The head of YOLOv10n at 640, end to end: the best 300 anchors, then the best 300 scores."""
    net = Net(15)
    distance, scores = _head(net)
    centres, strides = _anchors()
    low, high = net.slice(distance, 0, 2, 1), net.slice(distance, 2, 4, 1)
    first = net.node("Sub", net.constant(centres), low)
    last = net.node("Add", net.constant(centres), high)
    boxes = net.node("Mul", net.node("Concat", first, last, axis=1), net.constant(strides))
    boxes, scores = net.transpose(boxes, 0, 2, 1), net.transpose(scores, 0, 2, 1)
    best = net.node("ReduceMax", scores, axes=[-1], keepdims=0)
    _, index = net.several("TopK", [best, net.integers(300)], 2, axis=-1)
    rows = net.node("Unsqueeze", index, net.integers(-1))
    boxes = net.node("GatherElements", boxes, net.node("Tile", rows, net.integers(1, 1, 4)), axis=1)
    tiled = net.node("Tile", rows, net.integers(1, 1, 80))
    scores = net.reshape(net.node("GatherElements", scores, tiled, axis=1), 1, 24000)
    values, at = net.several("TopK", [scores, net.integers(300)], 2, axis=-1)
    eighty = net.constant(80, "int64")
    classes = net.node("Cast", net.node("Mod", at, eighty), to=1)
    rows = net.node("Unsqueeze", net.node("Div", at, eighty), net.integers(-1))
    boxes = net.node("GatherElements", boxes, net.node("Tile", rows, net.integers(1, 1, 4)), axis=1)
    last_axis = net.integers(-1)
    columns = [net.node("Unsqueeze", x, last_axis) for x in (values, classes)]
    y = net.node("Concat", boxes, *columns, axis=-1)
    forms = {"compared": _rows, "compared_int8": _ranked}
    return block(net.model(output0=y), _pyramid(), **forms)


def _rows(outputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Boxes, scores and classes, in the order of class and place. Of 300 scores some two are nearer
    to each other than float noise, so their rank is no property of a right stage."""
    (found,) = outputs
    whole = found[0][np.lexsort((found[0, :, 0], found[0, :, 5]))]
    return [whole[:, :4], whole[:, 4], whole[:, 5]]


def _ranked(outputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The scores by rank, and how coordinates are distributed: codes decide which anchors come."""
    (found,) = outputs
    return [found[..., 4], np.sort(found[..., :4], axis=1)]
