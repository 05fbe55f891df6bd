"""digits, end to end, on the 600 held-out images that neither training nor calibration saw."""

from __future__ import annotations

import numpy as np
import pytest

from npumake.bundle.archive import Bundle
from npumake.engine.lower import lowered
from npumake.engine.reference import ReferenceSession
from npumake.graph import Graph
from npumake.runtime import Session
from npumake.targets.reader import read_target
from workspaces import Workspace

TARGETS = ["rdk-x5", "ara240"]


def logits(session: Session | ReferenceSession, workspace: Workspace) -> np.ndarray:
    images = np.load(workspace.project / "test_images.npy").astype(np.float32) - 128
    fed = ({"image": image.reshape(1, 1, 8, 8)} for image in images)
    return np.concatenate([session.run(None, feed)[0] for feed in fed])


def labels(workspace: Workspace) -> np.ndarray:
    return np.load(workspace.project / "test_labels.npy")


@pytest.mark.parametrize("target", TARGETS)
def test_int8_loses_at_most_one_point(built_once: Workspace, target: str) -> None:
    out = built_once.project / "out"
    real = logits(Session(out / "original_float.onnx"), built_once).argmax(1)
    integer = logits(Session(out / f"digits.{target}.hybrid"), built_once).argmax(1)
    expected = labels(built_once)
    assert 100 * np.mean(real == expected) >= 99.0
    assert 100 * (np.mean(real == expected) - np.mean(integer == expected)) <= 1.0


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_the_bundle_equals_the_reference_bit_for_bit(built_once: Workspace, target: str) -> None:
    out = built_once.project / "out"
    graph = Graph.load(out / f"quantized.{target}.onnx")
    chip = read_target(target)
    reference = ReferenceSession(lowered(graph, chip.rounding, chip.operators))
    bundle = Session(out / f"digits.{target}.hybrid")
    assert np.array_equal(logits(bundle, built_once), logits(reference, built_once))


@pytest.mark.parametrize("target", TARGETS)
def test_onnxruntime_predicts_the_same_class_and_the_few_others_are_near_ties(
    built_once: Workspace, target: str
) -> None:
    """The integer engine rounds once where onnxruntime's float pipeline rounds the product of two
    floats, so a code may differ by one step. A class may differ only where such a step decides."""
    out = built_once.project / "out"
    exact = logits(Session(out / f"digits.{target}.hybrid"), built_once)
    fast = logits(Session(out / f"quantized.{target}.onnx"), built_once)
    differ = np.flatnonzero(exact.argmax(1) != fast.argmax(1))
    assert len(differ) <= 0.005 * len(exact)
    lies = Bundle.load(out / f"digits.{target}.hybrid").program.tensors.get("logits_quantized")
    # Sums are on no such grid: a step of theirs is as large as one of 8 bits would be.
    step = np.abs(exact).max() / 127 if lies is None else lies.scale
    assert np.abs(exact - fast).max() <= 2 * step * 1.001
    for index in differ:
        best, second = np.sort(exact[index])[::-1][:2]
        assert best - second <= 2 * step * 1.001, "a clear decision flipped"
