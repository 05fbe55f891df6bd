"""Trained models run bit for bit as in the reference engine. Skipped where they are not."""

from itertools import product

import numpy as np
import pytest

from npumake.engine.exact import ExactSession
from npumake.engine.lower import lowered
from npumake.engine.reference import ReferenceSession
from npumake.frontends import read_model
from npumake.graph import shape, upgraded
from npumake.passes import optimized
from npumake.project.sections import Calibration
from npumake.quant.calibration.observe import observe
from npumake.quant.calibration.ranges import ranges
from npumake.quant.qdq.grid_assignment import grids_of
from npumake.quant.qdq.insert import DEFAULT, with_qdq
from npumake.quant.qdq.integers import with_integer_weights
from npumake.targets.reader import read_target
from workspaces import few, shared_data

MODELS = shared_data() / "models"
FILES = {
    "classification/mobilenet_v1_0.25_224_float.tflite": 1.0,
    "classification/vww_96_float.tflite": 1.0,
    "detection/ultraface_slim320_rawhead.onnx": 1.0,
    "detection/yolox_person_192.onnx": 255.0,
}
CHIPS = ("rdk-x5", "ara240", "sl1640")
LIGHT = tuple(FILES)[:2]
LARGE = "detection/ultraface_slim320_rawhead.onnx"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not MODELS.is_dir(), reason="shared/data/models is not here"),
]


@pytest.mark.parametrize(
    ("name", "target"),
    few(
        product(FILES, CHIPS), lambda case: "classification" in case[0] or case == (LARGE, "ara240")
    ),
)
def test_it_is_the_reference_bit_for_bit_and_convolves_in_floats(name, target):
    file, chip = MODELS / name, read_target(target)
    graph = optimized(upgraded(read_model(file.read_bytes(), file.name)).with_shapes())
    rng = np.random.default_rng(0)
    feeds = [
        {
            str(v.name): rng.uniform(0, FILES[name], shape(v)).astype(np.float32)
            for v in graph.inputs
        }
        for _ in range(2)
    ]
    found = ranges(graph, observe(graph, feeds), Calibration("max"))
    grids = {tensor: grids_of(*span, chip) for tensor, span in found.items()}
    made = with_integer_weights(with_qdq(graph, grids, chip, DEFAULT))
    program = lowered(made, chip.rounding, chip.runnable)
    fast, exact = ExactSession(program), ReferenceSession(program)
    inside = [name for step in program.instructions for name in step.outputs]
    for session, names in ((fast, None), (ExactSession(program, watched=inside), inside)):
        made = zip(session.run(names, feeds[0]), exact.run(names, feeds[0]), strict=True)
        for ours, theirs in made:
            np.testing.assert_array_equal(ours, theirs)
    convs = [f for f, s in zip(fast.in_floats, program.instructions, strict=True) if s.op == "conv"]
    assert all(convs)
