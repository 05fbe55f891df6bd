"""quantized.onnx of every real model: valid, runs in stock onnxruntime, loads in OpenVINO.

The models lie beside the repository, not in it; where they are absent this is skipped.
"""

from __future__ import annotations

import onnx
import pytest

from frontends.test_every_real_model import FILES, feeds, graphs
from npumake.engine.ort import OrtSession
from npumake.graph import Graph
from npumake.project.sections import Calibration
from npumake.quant.calibration.observe import observe
from npumake.quant.qdq.insert import DEFAULT
from npumake.quant.qdq.integers import with_integer_weights
from npumake.quant.search.methods import calibrated_with, ranges_by_method
from npumake.targets.reader import read_target
from quant.test_openvino import IN_FLOAT32
from workspaces import few

openvino = pytest.importorskip("openvino", reason="openvino is not installed")
RAN = [file for file in FILES if file.suffix != ".pb"]  # those need npumake[tensorflow]
LARGE = "squeezenet1.1_winml_fp32_DERIVED"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not FILES, reason="shared/data/models is not here"),
]


def quantized(graph: Graph, chip: str) -> Graph:
    target = read_target(chip)
    statistics = observe(graph, [feeds(graph)])
    recipe = ranges_by_method(graph, statistics, Calibration("max"), target.activations.symmetric)
    return with_integer_weights(calibrated_with(graph, recipe, target, DEFAULT))


@pytest.mark.parametrize("chip", ["ara240", "rdk-x5"])
@pytest.mark.parametrize(
    "file",
    few(RAN, lambda file: file.stat().st_size < 600_000 or file.stem == LARGE),
    ids=lambda file: file.stem,
)
def test_it_is_valid_runs_and_loads_everywhere(file, chip):
    graph = graphs(file)[1]
    data = quantized(graph, chip).to_bytes()
    onnx.checker.check_model(onnx.load_from_string(data), full_check=True)
    made = OrtSession(data).run(None, feeds(graph))
    wanted = OrtSession(graph.to_bytes()).run(None, feeds(graph))
    assert [y.shape for y in made] == [y.shape for y in wanted]
    core = openvino.Core()
    model = core.read_model(data)
    assert len(model.outputs) == len(wanted)
    core.compile_model(model, "CPU", IN_FLOAT32)
