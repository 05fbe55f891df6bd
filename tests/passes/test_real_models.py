"""Upgraded and optimized, real trained models compute what their files do.

The models lie beside the repository, not in it; where they are absent this is skipped.
"""

import numpy as np
import pytest
from workspaces import shared_data

from pipeline.engine.ort import OrtSession
from pipeline.frontends import read_model
from pipeline.graph import dtype, open_dimensions, shape, upgraded
from pipeline.passes import optimized

MODELS = shared_data() / "models"
FILES = sorted(MODELS.rglob("*.onnx"))

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not FILES, reason="shared/data/models is not here"),
]


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    a, b = (x.astype(np.float64).ravel() for x in (a, b))
    return float(a @ b / np.sqrt((a @ a) * (b @ b)))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_an_optimized_model_computes_what_its_file_does(file):
    original = file.read_bytes()
    graph = read_model(original, file.name)
    if any(open_dimensions(value) for value in graph.inputs):
        pytest.skip("its inputs have open dimensions")
    newer = upgraded(graph)
    better = optimized(newer)
    rng = np.random.default_rng(0)
    feeds = {str(v.name): rng.normal(size=shape(v)).astype(dtype(v)) for v in graph.inputs}
    before = OrtSession(original).run(None, feeds)
    after = OrtSession(better.to_bytes()).run(None, feeds)
    assert [a.shape for a in after] == [b.shape for b in before]
    assert min(map(cosine, after, before)) >= 0.999999
    assert len(better.nodes()) <= len(newer.nodes())
