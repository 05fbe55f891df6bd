"""original_float: the model as it was trained, with its preprocessing in front.

    model file → graph, static shapes, working opset → one preprocessing node per input

The chip is fed x (for an image: pixel - 128); the model was trained on (pixel - mean) * scale.
So the node computes (x + offset - mean) * scale, as a 1x1 depthwise convolution that the chip
itself can run: weight = scale, bias = (offset - mean) * scale.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pipeline.errors import GraphError, ProjectError, Route, did_you_mean
from pipeline.frontends import read_model
from pipeline.graph import Graph, Value, open_dimensions, shape, upgraded
from pipeline.project.files import SourceFiles
from pipeline.project.names import entries, strangers
from pipeline.project.sections import Input, Model
from pipeline.quant.images import mark_images


def original_float(model: Model, inputs: Mapping[str, Input], sources: SourceFiles) -> Graph:
    (file,) = sources["model.path"]
    graph = read_model(file.read(), file.name)
    fed = {str(value.name): value for value in graph.inputs}
    for name in strangers(inputs, fed):
        hint = did_you_mean(name, fed)
        raise ProjectError(f"the model has no input `{name}`", Route(f"inputs.{name}"), hint)
    inputs = {name: inputs[key] for name, key in entries(inputs, fed).items()}
    graph = upgraded(_with_fixed_shapes(graph, inputs)).with_shapes()
    for value in graph.inputs:
        _insert_preprocessing(graph, value, inputs.get(str(value.name), Input()))
    mark_images(graph, [name for name, given in inputs.items() if given.offset])
    return graph.with_shapes()


def _with_fixed_shapes(graph: Graph, inputs: Mapping[str, Input]) -> Graph:
    for value in graph.inputs:
        name = str(value.name)
        given = inputs.get(name, Input()).shape
        if given is not None:
            _check_shape(value, given)
            graph.set_input_shape(value, given)
        elif opened := open_dimensions(value):
            raise GraphError(
                f"input `{name}` leaves a dimension open: {opened}",
                Route(f"inputs.{name}"),
                f"fix it under `inputs:`, for example  {name}: {{shape: [1, 3, 224, 224]}}",
            )
    return graph


def _check_shape(value: Value, given: tuple[int, ...]) -> None:
    declared = () if value.shape is None else tuple(value.shape)
    fits = len(declared) == len(given) and all(
        not isinstance(dim, int) or dim == size for dim, size in zip(declared, given, strict=True)
    )
    if value.shape is not None and not fits:
        raise ProjectError(
            f"shape {list(given)} does not fit input `{value.name}`, which the model declares as "
            f"[{', '.join(str(dim) for dim in declared)}]",
            Route(f"inputs.{value.name}.shape"),
        )


def _insert_preprocessing(graph: Graph, value: Value, given: Input) -> None:
    mean, scale = np.asarray(given.mean, np.float64), np.asarray(given.scale, np.float64)
    bias = (given.offset - mean) * scale
    if np.all(bias == 0.0) and np.all(scale == 1.0):
        return
    rank, name = len(shape(value)), str(value.name)
    if given.layout == "NCHW" and rank == 4:
        _insert_convolution(graph, value, scale, bias)
        return
    # Channels last, or no channels at all: two elementwise nodes.
    axis = rank - 1 if given.layout == "NHWC" else min(1, rank - 1)
    spread = [-1 if index == axis else 1 for index in range(rank)]
    channels = shape(value)[axis]
    gain = _per_channel(scale, channels, f"inputs.{name}.scale").reshape(spread)
    shift = _per_channel(bias, channels, f"inputs.{name}.mean").reshape(spread)
    readers = [use.node for use in tuple(value.uses())]
    scaled = graph.insert("Mul", [value, graph.constant(f"{name}_scale", gain)], f"{name}_scaled")
    moved = graph.constant(f"{name}_shift", shift)
    ready = graph.insert("Add", [scaled, moved], f"preprocess_{name}", scaled.producer())
    graph.replace_readers(value, ready, readers)


def _insert_convolution(graph: Graph, value: Value, scale: np.ndarray, bias: np.ndarray) -> None:
    name, channels = str(value.name), shape(value)[1]
    readers = [use.node for use in tuple(value.uses())]
    weight = _per_channel(scale, channels, f"inputs.{name}.scale").reshape(channels, 1, 1, 1)
    ready = graph.insert(
        "Conv",
        [
            value,
            graph.constant(f"preprocess_{name}_weight", weight),
            graph.constant(
                f"preprocess_{name}_bias", _per_channel(bias, channels, f"inputs.{name}.mean")
            ),
        ],
        f"preprocess_{name}",
        group=channels,
    )
    graph.replace_readers(value, ready, readers)


def _per_channel(values: np.ndarray, channels: int, route: str) -> np.ndarray:
    """(channels,) float32. Raises ProjectError when there are neither one nor `channels`."""
    if values.size not in (1, channels):
        raise ProjectError(
            f"{values.size} values for {channels} channels",
            Route(route),
            "give one number for all channels, or one per channel",
        )
    return np.broadcast_to(values.reshape(-1), (channels,)).astype(np.float32)
