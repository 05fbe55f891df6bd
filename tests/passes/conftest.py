"""Running a graph before and after a pass."""

from collections.abc import Callable, Mapping

import numpy as np
import pytest

from npumake.engine.ort import OrtSession
from npumake.graph import Graph, dtype, shape

Outputs = dict[str, np.ndarray]


def _fed(graph: Graph) -> Mapping[str, np.ndarray]:
    """Normal numbers for every input, the same at every call; as a truth value, true."""
    rng = np.random.default_rng(0)
    drawn = {str(value.name): rng.normal(size=shape(value)) for value in graph.inputs}
    return {str(v.name): np.asarray(drawn[str(v.name)], dtype(v)) for v in graph.inputs}


@pytest.fixture
def outputs() -> Callable[[Graph], Outputs]:
    """What a graph gives, by name, in onnxruntime."""

    def run(graph: Graph) -> Outputs:
        session = OrtSession(graph.to_bytes())
        return dict(zip(session.output_names, session.run(None, _fed(graph)), strict=True))

    return run
