"""shapes-detector, end to end, on scenes that neither training nor calibration saw."""

from __future__ import annotations

import runpy
from types import SimpleNamespace

import pytest
from workspaces import Workspace, lay_out

TARGETS = ["rdk-x5", "ara240"]
MAP50, MAP50_95 = 84.73, 67.74  # percent, of the float model on the 300 scenes
SOME = range(20)  # the exact integer engine takes a third of a second per scene
OF_SOME = {
    "original_float.onnx": (90.64, 74.51),
    "@split/shapes-detector.ara240.hybrid": (90.12, 72.58),
    "shapes-detector.ara240.hybrid": (90.06, 66.27),
    "shapes-detector.rdk-x5.hybrid": (84.62, 52.63),
}  # mAP50 and mAP50:95 in percent: cut before boxes are computed, then with their arithmetic


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    workspace = lay_out(tmp_path_factory.mktemp("shapes") / "w", "shapes-detector")
    built = [f"shapes-detector:{target}/compiled" for target in TARGETS]
    workspace.doit(*built, "shapes-detector@split:ara240/compiled")
    return workspace


@pytest.fixture
def evaluate(compiled: Workspace, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """What evaluate.py defines."""
    monkeypatch.syspath_prepend(str(compiled.project))
    return SimpleNamespace(**runpy.run_path(str(compiled.project / "evaluate.py")))


@pytest.mark.slow
def test_the_float_model_is_as_good_as_documented(compiled, evaluate):
    """Within 0.3 points: two shapes of a thousand."""
    found = evaluate.precision(compiled.project / "out/original_float.onnx", evaluate.TEST)
    assert 100 * found.map50 == pytest.approx(MAP50, abs=0.3)
    assert 100 * found.map50_95 == pytest.approx(MAP50_95, abs=0.3)


@pytest.mark.slow
@pytest.mark.parametrize("artifact", OF_SOME)
def test_every_artifact_is_as_good_on_some_scenes_as_documented(compiled, evaluate, artifact):
    """Within a point: statistics come from onnxruntime, whose versions round differently."""
    found = evaluate.precision(compiled.project / "out" / artifact, SOME)
    assert (100 * found.map50, 100 * found.map50_95) == pytest.approx(OF_SOME[artifact], abs=1.0)
