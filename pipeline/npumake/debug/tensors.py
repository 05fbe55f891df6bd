"""The tensors of a node over all samples, in float and calibrated, for plots."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce

import numpy as np

from npumake.debug.calibration_nodes import CalibrationNode, without
from npumake.debug.distributions import Bars, Boxes, bars, boxes, counted
from npumake.debug.sensitivity import ModelUnderTest
from npumake.engine.partial.opened import of_tensors
from npumake.graph import Value, array
from npumake.kernels.histogram import Histogram, merged

Panels = dict[str, dict[str, Bars]]


def node_bars(
    model: ModelUnderTest, spots: Sequence[CalibrationNode], is_regular: bool
) -> tuple[Panels, float]:
    """The distributions of a calibration node's input or of a regular node's output, and the
    threshold. Raises GraphError for values that are not finite."""
    activations = [node for node in spots if node.kind == "activation"]
    node = activations[-1] if is_regular and activations else spots[0]
    if is_regular and activations:
        return _output(model, node), node.threshold
    if node.kind == "activation":
        total = reduce(merged, map(counted, _tensor(model, node.tensor)))
        return {"activation": {"given": bars(total)}}, node.threshold
    values = weight(model.calibrated.values(), node)
    values_by_source = {"float": values, "calibrated": node.on_grid(values)}
    return {
        "weight": {name: bars(counted(histogram)) for name, histogram in values_by_source.items()}
    }, node.threshold


def tensor_boxes(model: ModelUnderTest, node: CalibrationNode, axis: int | None) -> Boxes:
    """Box plots per channel of a calibration node's input. Raises GraphError."""
    if node.kind == "weight":
        values = weight(model.calibrated.values(), node)
        return boxes(lambda: iter([values]), (node.axis or 0) if axis is None else axis)
    return boxes(lambda: _tensor(model, node.tensor), axis)


def weight(calibrated: Mapping[str, Value], node: CalibrationNode) -> np.ndarray:
    """The constant of a weight's calibration node, from the graph's values."""
    values = array(calibrated[node.tensor])
    assert values is not None  # by its kind
    return values


def _output(model: ModelUnderTest, node: CalibrationNode) -> Panels:
    real = of_tensors(without(model.calibrated), [node.tensor], model.operators)
    calibrated = of_tensors(model.calibrated, [node.real], model.operators)
    totals: list[Histogram] = []
    for feed in model.samples:
        (a,), (b,) = real.run(feed).values(), calibrated.run(feed).values()
        histograms = [counted(entry) for entry in (a, b, b - a)]
        totals = (
            [merged(*pair) for pair in zip(totals, histograms, strict=True)]
            if totals
            else histograms
        )
    first, second, error = map(bars, totals)
    return {
        "node_output": {"float": first, "calibrated": second},
        "error": {"calibrated - float": error},
    }


def _tensor(model: ModelUnderTest, name: str) -> Iterator[np.ndarray]:
    part = of_tensors(model.calibrated, [name], model.operators)
    return (part.run(feed)[name] for feed in model.samples)
