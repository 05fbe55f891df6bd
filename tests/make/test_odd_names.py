"""Names that frameworks give: an input called `input.1`, a tensor with slashes and colons."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from npumake.cli.projects import selected
from npumake.graph import parse_text
from npumake.make.maker import make
from npumake.runtime import Session


@pytest.mark.slow
@pytest.mark.parametrize("name", ["input.1", "serving/x:0", "0"])
def test_an_input_of_any_name_builds(tmp_path: Path, name: str) -> None:
    graph = parse_text("agraph (float[1,4] x) => (float[1,4] y) { y = Relu(x) }")
    graph.inputs[0].name = name
    (tmp_path / "model.onnx").write_bytes(graph.to_bytes())
    (tmp_path / "samples").mkdir()
    for number in range(8):
        sample = np.array([[-1, 0, 1, 2]], np.float32) + np.float32(number) / 8
        np.save(tmp_path / "samples" / f"{number}.npy", sample)
    (tmp_path / "project.yaml").write_text(
        f'model: {{path: model.onnx}}\ndata: {{"{name}": {{files: samples/*.npy}}}}\n'
        "calibration: {method: max}\ntargets: [ara240]\n"
    )
    (build,) = selected(tmp_path, [], paranoid=False)
    for node in build.plan.nodes:
        make(build, node)
    states = build.states()
    assert {state.status for state in states.values()} == {"current"}
    bundle = Session(tmp_path / "out" / f"{tmp_path.name}.ara240.hybrid")
    (made,) = bundle.run(None, {name: np.array([[-1, 0, 1, 2]], np.float32)})
    np.testing.assert_allclose(made, [[0, 0, 1, 2]], atol=0.02)
