"""Preprocessing: nodes that convert the chip's input to the trained input.

    planes → trained layout → chroma to full size → one tensor → crop → resize → color and norm

Color, mean and scale are one linear map of the channels. A plane holds x = code - o, o = `offset`:

    y = scale · (M (x + o) + t - mean) = W x + b        W = diag(scale) M
                                                        b = (M o + t - mean) · scale

In NCHW this is one 1x1 convolution, depthwise if M only reorders. In other layouts it is a product
and a sum. No step rounds or clips.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from npumake.borders.crop import cropped
from npumake.borders.front import Front
from npumake.errors import ProjectError, Route
from npumake.graph import Graph, Value, dtype
from npumake.kernels.color import mixing
from npumake.project.feeding import RECTANGLE, Feeding, Plane
from npumake.project.sections import PerChannel

_ORDERS = {("NHWC", "NCHW"): (0, 3, 1, 2), ("NCHW", "NHWC"): (0, 2, 3, 1)}
_FLOAT = "float32"


def put_in_front(
    graph: Graph, value: Value, feeding: Feeding, mean: PerChannel, scale: PerChannel
) -> tuple[Value, ...]:
    """Inserts the preprocessing of the model input `value` and returns the planes fed instead.

    Raises ProjectError if mean or scale have neither one number nor one per channel, or if the
    name of a plane is in use.
    """
    name, kind, front = str(value.name), dtype(value), Front(graph)
    _refuse_name_clash(graph, feeding, name)
    readers = [use.node for use in tuple(value.uses())]
    planes = _planes(graph, value, feeding)
    ready = _gathered(front, planes, feeding, name)
    if feeding.crop:
        ready = cropped(front, ready, _rectangle(graph, planes, feeding, name), feeding, name)
    elif feeding.channels and feeding.fed_size != feeding.trained_size:
        ready = front.resize(
            ready, _sizes(feeding, feeding.trained_size), "linear", f"{name}_resized"
        )
    norm = (np.asarray(mean, np.float64), np.asarray(scale, np.float64))
    ready = _mapped(front, ready, feeding, name, norm)
    if ready is value:
        return planes
    for plane, how in zip(planes, feeding.planes, strict=True):
        graph.feed_as(plane, _FLOAT, plane_shape(feeding, how))
    if kind != _FLOAT:
        ready = _cast(front, ready, kind, name)
    graph.replace_readers(value, ready, readers)
    if value not in planes:
        graph.drop_input(value)
    return planes


def _refuse_name_clash(graph: Graph, feeding: Feeding, name: str) -> None:
    values = graph.values()
    for called in feeding.inputs(name):
        if called != name and called in values:
            message = f"the model already has a tensor `{called}`, the name of a plane"
            raise ProjectError(message, Route(f"inputs.{name}.preprocess"))


def plane_shape(feeding: Feeding, plane: Plane) -> tuple[int, ...]:
    """The shape of the plane's graph input."""
    if not plane.channels:
        return _permuted(feeding.shape, feeding.layout, plane.layout)
    height, width = (side // 2 if plane.halved else side for side in feeding.fed_size)
    of = {"N": feeding.shape[0], "C": len(plane.channels), "H": height, "W": width}
    return tuple(of[letter] for letter in plane.layout)


def _planes(graph: Graph, value: Value, feeding: Feeding) -> tuple[Value, ...]:
    if len(feeding.planes) == 1:
        return (value,)
    at = graph.inputs.index(value)
    return tuple(
        graph.add_input(name, _FLOAT, at + index)
        for index, name in enumerate(feeding.inputs(str(value.name))[: len(feeding.planes)])
    )


def _rectangle(
    graph: Graph, planes: Sequence[Value], feeding: Feeding, name: str
) -> dict[str, Value]:
    behind, names = graph.inputs.index(planes[-1]) + 1, feeding.inputs(name)[len(planes) :]
    return {
        side: graph.add_input(called, "int32", behind + index, (1,))
        for index, (side, called) in enumerate(zip(RECTANGLE, names, strict=True))
    }


def _gathered(front: Front, planes: Sequence[Value], feeding: Feeding, name: str) -> Value:
    """Joins all planes into one tensor of the picture's size, in the trained layout."""
    parts = []
    for value, plane in zip(planes, feeding.planes, strict=True):
        order = _ORDERS.get((plane.layout, feeding.layout)) if len(feeding.shape) == 4 else None
        called = f"{name}_{plane.tag or 'fed'}"
        if order:
            value = front.add(
                "Transpose", [value], f"{called}_{feeding.layout.lower()}", perm=order
            )
        if plane.halved:
            sizes = _sizes(feeding, feeding.fed_size, len(plane.channels))
            value = front.resize(value, sizes, "nearest", f"{called}_full")
        parts.append(value)
    if len(parts) == 1:
        return parts[0]
    return front.add("Concat", parts, f"{name}_planes", axis=feeding.layout.index("C"))


def _sizes(feeding: Feeding, size: tuple[int, int], channels: int = 0) -> tuple[int, ...]:
    """The shape of a picture of `size` in the trained layout; by default with all channels fed."""
    of = {
        "N": feeding.shape[0],
        "C": channels or len(feeding.fed_channels),
        "H": size[0],
        "W": size[1],
    }
    return tuple(of[letter] for letter in feeding.layout)


def _mapped(
    front: Front, value: Value, feeding: Feeding, name: str, norm: tuple[np.ndarray, np.ndarray]
) -> Value:
    """W x + b, or `value` itself if that is x. `norm` is (mean, scale)."""
    mean, scale = norm
    color = mixing(feeding.fed_channels, feeding.channels, video=feeding.video)
    level = (
        feeding.offset * color.matrix.sum(axis=1) + color.shift
        if feeding.channels
        else feeding.offset
    )
    rank = len(feeding.shape)
    axis = rank - 1 if feeding.layout == "NHWC" else min(1, rank - 1)
    channels = feeding.shape[axis] if rank else 1
    mean = _per_channel(mean, channels, f"inputs.{name}.mean")
    scale = _per_channel(scale, channels, f"inputs.{name}.scale")
    bias = (level - mean) * scale
    copies = feeding.channels == feeding.fed_channels
    if copies and np.all(bias == 0.0) and np.all(scale == 1.0):
        return value
    weight = scale if copies else scale[:, None] * color.matrix
    if rank == 4 and axis == 1:
        return _convolution(front, value, weight, bias, name)
    if not copies:
        return _product(front, value, weight, bias, name)
    spread = [-1 if index == axis else 1 for index in range(rank)]
    return _elementwise(front, value, weight.reshape(spread), bias.reshape(spread), name)


def _convolution(
    front: Front, value: Value, weight: np.ndarray, bias: np.ndarray, name: str
) -> Value:
    """1x1 over (N, C, H, W); depthwise if `weight` has one number per channel."""
    channels, in_channels = weight.shape if weight.ndim == 2 else (len(weight), 1)
    inputs = [
        value,
        front.floats(f"preprocess_{name}_weight", weight.reshape(channels, in_channels, 1, 1)),
        front.floats(f"preprocess_{name}_bias", bias),
    ]
    group = channels if weight.ndim == 1 else None
    return front.add("Conv", inputs, f"preprocess_{name}", group=group)


def _product(front: Front, value: Value, weight: np.ndarray, bias: np.ndarray, name: str) -> Value:
    """The same with the channels last."""
    mixer = front.floats(f"{name}_mixer", weight.T)
    mixed = front.add("MatMul", [value, mixer], f"{name}_mixed")
    return front.add("Add", [mixed, front.floats(f"{name}_shift", bias)], f"preprocess_{name}")


def _elementwise(
    front: Front, value: Value, gain: np.ndarray, shift: np.ndarray, name: str
) -> Value:
    """A product and a sum, for all layouts but NCHW."""
    scaled = front.add("Mul", [value, front.floats(f"{name}_scale", gain)], f"{name}_scaled")
    return front.add("Add", [scaled, front.floats(f"{name}_shift", shift)], f"preprocess_{name}")


def _cast(front: Front, value: Value, kind: str, name: str) -> Value:
    """Casts to the model's own type; integers are rounded and saturated."""
    if np.dtype(kind).kind in "iu":
        limits = np.iinfo(kind)
        low = front.floats(f"{name}_low", np.array(limits.min))
        high = front.floats(f"{name}_high", np.array(limits.max))
        whole = front.add("Round", [value], f"{name}_round")
        value = front.add("Clip", [whole, low, high], f"{name}_held")
    return front.cast(value, kind, f"{name}_{kind}")


def _permuted(sizes: tuple[int, ...], source: str, target: str) -> tuple[int, ...]:
    order = _ORDERS.get((source, target)) if len(sizes) == 4 else None
    return tuple(sizes[axis] for axis in order) if order else sizes


def _per_channel(values: np.ndarray, channels: int, route: str) -> np.ndarray:
    """(channels,) float64. Raises ProjectError for another number of values."""
    if values.size not in (1, channels):
        raise ProjectError(
            f"{values.size} values for {channels} channels",
            Route(route),
            "give one number for all channels, or one per channel",
        )
    return np.broadcast_to(values.reshape(-1), (channels,))
