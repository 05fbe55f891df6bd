"""What is looked at when a node is: its tensors over all samples, float and calibrated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce

import numpy as np

from npumake.debug.calibration_nodes import CalibrationNode, without
from npumake.debug.distributions import Bars, Boxes, bars, boxes, counted
from npumake.debug.sensitivity import ModelUnderTest
from npumake.engine.float_session import FloatSession, float_session
from npumake.graph import Graph, Value, array
from npumake.kernels.histogram import Histogram, merged

Panels = dict[str, dict[str, Bars]]


def node_bars(
    patient: ModelUnderTest, spots: Sequence[CalibrationNode], is_regular: bool
) -> tuple[Panels, float]:
    """Of one calibration node what it is given, or of a regular node what it makes; the threshold
    there. Raises GraphError for numbers that are not finite."""
    made = [one for one in spots if one.kind == "activation"]
    one = made[-1] if is_regular and made else spots[0]
    if is_regular and made:
        return _output(patient, one), one.threshold
    if one.kind == "activation":
        total = reduce(merged, map(counted, _tensor(patient, one.tensor)))
        return {"activation": {"given": bars(total)}}, one.threshold
    values = weight(patient.calibrated.values(), one)
    both = {"float": values, "calibrated": one.on_grid(values)}
    return {"weight": {name: bars(counted(each)) for name, each in both.items()}}, one.threshold


def tensor_boxes(patient: ModelUnderTest, one: CalibrationNode, axis: int | None) -> Boxes:
    """Raises GraphError."""
    if one.kind == "weight":
        values = weight(patient.calibrated.values(), one)
        return boxes(lambda: iter([values]), (one.axis or 0) if axis is None else axis)
    return boxes(lambda: _tensor(patient, one.tensor), axis)


def weight(calibrated: Mapping[str, Value], one: CalibrationNode) -> np.ndarray:
    """Of the calibrated graph's values."""
    values = array(calibrated[one.tensor])
    assert values is not None  # that makes it a weight
    return values


def _output(patient: ModelUnderTest, one: CalibrationNode) -> Panels:
    real = _watching(patient, without(patient.calibrated), one.tensor)
    made = _watching(patient, patient.calibrated.copy(), one.real)
    totals: list[Histogram] = []
    for feed in patient.samples:
        (a,), (b,) = real.run(None, feed), made.run(None, feed)
        found = [counted(each) for each in (a, b, b - a)]
        totals = [merged(*pair) for pair in zip(totals, found, strict=True)] if totals else found
    first, second, error = map(bars, totals)
    return {
        "node_output": {"float": first, "calibrated": second},
        "error": {"calibrated - float": error},
    }


def _tensor(patient: ModelUnderTest, name: str) -> Iterator[np.ndarray]:
    session = _watching(patient, patient.calibrated.copy(), name)
    for feed in patient.samples:
        yield session.run(None, feed)[0]


def _watching(patient: ModelUnderTest, graph: Graph, name: str) -> FloatSession:
    graph.expose([name])
    graph.drop_unused()
    return float_session(graph, patient.operators)
