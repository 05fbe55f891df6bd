"""shapes-detector, end to end, on scenes that neither training nor calibration saw."""

from __future__ import annotations

import runpy
from types import SimpleNamespace

import pytest

from workspaces import Workspace, lay_out

BUILT = [
    *("shapes-detector:rdk-x5", "shapes-detector:ara240"),
    *("shapes-detector@split:ara240", "shapes-detector@int16_smart:ara240"),
]
MAP50, MAP50_95 = 84.73, 67.74  # percent, of the float model on the 300 scenes
MANY, SOME = range(100), range(20)  # exact integers take a third of a second per scene

# mAP50 and mAP50:95 in percent. Each is documented to be as good as the one before.
OF_MANY = {
    "quantized.ara240.onnx": (83.6, 61.5),
    "@split/quantized.ara240.onnx": (83.9, 64.4),
    "@int16_smart/quantized.ara240.onnx": (84.0, 66.9),
}
OF_SOME = {
    "shapes-detector.rdk-x5.hybrid": (90.7, 69.2),
    "shapes-detector.ara240.hybrid": (90.5, 66.9),
    "@split/shapes-detector.ara240.hybrid": (90.5, 68.9),
    "@int16_smart/shapes-detector.ara240.hybrid": (90.6, 72.9),
}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    workspace = lay_out(tmp_path_factory.mktemp("shapes") / "w", "shapes-detector")
    workspace.doit(*(f"{branch}/compiled" for branch in BUILT))
    return workspace


@pytest.fixture
def evaluate(compiled: Workspace, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """What evaluate.py defines."""
    monkeypatch.syspath_prepend(str(compiled.project))
    return SimpleNamespace(**runpy.run_path(str(compiled.project / "evaluate.py")))


def test_the_float_model_is_as_good_as_documented(compiled, evaluate):
    """Within 0.3 points: two shapes of a thousand."""
    found = evaluate.precision(compiled.project / "out/original_float.onnx", evaluate.TEST)
    assert 100 * found.map50 == pytest.approx(MAP50, abs=0.3)
    assert 100 * found.map50_95 == pytest.approx(MAP50_95, abs=0.3)


def test_split_is_better_than_whole_and_int16_smart_than_split(compiled, evaluate):
    """Within a point: statistics come from onnxruntime, whose versions round differently."""
    found = [evaluate.precision(compiled.project / "out" / name, MANY) for name in OF_MANY]
    for each, expected in zip(found, OF_MANY.values(), strict=True):
        assert (100 * each.map50, 100 * each.map50_95) == pytest.approx(expected, abs=1.0)
    whole, split, smart = (each.map50_95 for each in found)
    assert whole < split < smart


@pytest.mark.parametrize("artifact", OF_SOME)
def test_every_artifact_is_as_good_in_exact_integers_as_documented(compiled, evaluate, artifact):
    """Within a point, as above."""
    found = evaluate.precision(compiled.project / "out" / artifact, SOME)
    assert (100 * found.map50, 100 * found.map50_95) == pytest.approx(OF_SOME[artifact], abs=1.0)
