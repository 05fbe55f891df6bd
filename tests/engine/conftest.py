"""From a float graph to its integers, by the real path, and onnxruntime as the oracle."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np
import onnxruntime
import pytest

from npumake.graph import Graph, shape
from npumake.project.sections import Calibration, Quantization
from npumake.quant.calibration.observe import observe
from npumake.quant.calibration.ranges import ranges
from npumake.quant.qdq.grid_assignment import grids_of
from npumake.quant.qdq.insert import DEFAULT, with_qdq
from npumake.quant.qdq.integers import with_integer_weights
from npumake.targets.target import Activations, Target, WeightGrid

Feeds = Mapping[str, np.ndarray]


@pytest.fixture(scope="session")
def chip() -> Callable[..., Target]:
    """chip(dtype, symmetric): a target of that activation grid."""

    def target(dtype="int8", symmetric=False, per_channel=True, operators=None) -> Target:
        return Target(
            "chip",
            "vendor",
            "NPU",
            Activations(dtype, symmetric),
            WeightGrid("int8", per_channel),
            "half_even",
            operators=operators,
        )

    return target


@pytest.fixture(scope="session")
def samples() -> Callable[..., list[Feeds]]:
    """samples(graph): three normal feeds for every input."""

    def drawn(graph: Graph, count: int = 3, seed: int = 0) -> list[Feeds]:
        rng = np.random.default_rng(seed)
        shapes = {str(value.name): shape(value) for value in graph.inputs}
        return [
            {name: rng.normal(0.2, 1.0, dims).astype(np.float32) for name, dims in shapes.items()}
            for _ in range(count)
        ]

    return drawn


@pytest.fixture(scope="session")
def quantized() -> Callable[..., Graph]:
    """quantized(graph, feeds, target): the graph in integers, ranges as measured on the feeds.

    The same feeds of the same graph are measured once, whatever the target."""
    measured: dict[tuple[bytes, ...], Mapping[str, tuple[float, float]]] = {}

    def made(
        graph: Graph,
        feeds: Iterable[Feeds],
        target: Target,
        quantization: Quantization = DEFAULT,
    ) -> Graph:
        feeds = list(feeds)
        arrays = [array.tobytes() for feed in feeds for array in feed.values()]
        key = (graph.to_bytes(), *arrays)
        if key not in measured:
            measured[key] = ranges(graph, observe(graph, feeds), Calibration("max"))
        grids = {name: grids_of(*span, target) for name, span in measured[key].items()}
        return with_integer_weights(with_qdq(graph, grids, target, quantization))

    return made


@pytest.fixture(scope="session")
def literal() -> Callable[..., dict[str, np.ndarray]]:
    """literal(graph, feeds, names): these tensors by onnxruntime, node by node, nothing fused."""

    def run(graph: Graph, feeds: Feeds, names: Iterable[str]) -> dict[str, np.ndarray]:
        watched, names = graph.copy(), list(names)
        watched.expose(names)
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(
            watched.to_bytes(), options, providers=["CPUExecutionProvider"]
        )
        return dict(zip(names, session.run(None, dict(feeds)), strict=True))

    return run
