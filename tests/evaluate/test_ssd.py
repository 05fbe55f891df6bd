"""SSD heads decoded: raw, decoded and finished outputs, against a few lines of NumPy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from numpy.random import RandomState

from frontends.test_tflite_detections import ANCHORS, detector
from npumake import digest
from npumake.errors import ProjectError
from npumake.evaluate.ssd import anchors_of, decode_ssd
from npumake.project.files import SourceFile, SourceFiles
from npumake.project.sections import FilePath, Ssd
from workspaces import shared_data

FACES = shared_data() / "models/detection"
ULTRAFACE = Ssd(
    sizes=((10.0, 16.0, 24.0), (32.0, 48.0), (64.0, 96.0), (128.0, 192.0, 256.0)),
    strides=(8, 16, 32, 64),
)


def sources(path: Path) -> SourceFiles:
    return {"evaluation.ssd.anchors": (SourceFile(path.name, str(path), digest.of_file(path)),)}


def one_box(score: float = 0.9) -> dict[str, np.ndarray]:
    """Two anchors, three classes with background; the second anchor is no detection."""
    return {
        "scores": np.array([[[0.05, score, 0.05], [1.0, 0.0, 0.0]]], np.float32),
        "boxes": np.array([[[1.0, 2.0, 0.0, 5.0], [0, 0, 0, 0]]], np.float32),
    }


def test_offsets_are_to_anchors_by_variances(tmp_path):
    np.save(tmp_path / "a.npy", np.array([[0.5, 0.4, 0.2, 0.1], [0.1, 0.1, 0.1, 0.1]], np.float32))
    said = Ssd(anchors=FilePath("a.npy"), variances=(0.1, 0.2))
    found = decode_ssd(one_box(), said, anchors_of(said, sources(tmp_path / "a.npy"), (8, 8)))
    cx, cy, w, h = 0.5 + 1 * 0.1 * 0.2, 0.4 + 2 * 0.1 * 0.1, 0.2, 0.1 * np.e
    expected = [cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2]
    assert found.boxes[0].tolist() == pytest.approx(expected, abs=1e-6)
    assert (found.classes[0], found.scores[0]) == (0, pytest.approx(0.9))


def test_y_may_come_first_and_scores_be_logits(tmp_path):
    np.save(tmp_path / "a.npy", np.array([[0.4, 0.5, 0.1, 0.2], [0.1, 0.1, 0.1, 0.1]], np.float32))
    arrays = one_box(3.0)
    arrays["boxes"] = arrays["boxes"][..., [1, 0, 3, 2]]
    said = Ssd(anchors=FilePath("a.npy"), order="yxhw", activation="softmax")
    found = decode_ssd(arrays, said, anchors_of(said, sources(tmp_path / "a.npy"), (8, 8)))
    weights = np.exp([0.05, 3.0, 0.05])
    assert found.scores[0] == pytest.approx(weights[1] / weights.sum(), abs=1e-6)
    assert found.boxes[0, 0] == pytest.approx(0.52 - 0.1, abs=1e-6)


def test_a_tflite_model_has_its_own_anchors(tmp_path):
    (tmp_path / "ssd.tflite").write_bytes(detector())
    said = Ssd(anchors=FilePath("ssd.tflite"), order="yxhw")
    found = anchors_of(said, sources(tmp_path / "ssd.tflite"), (8, 8))
    assert np.array_equal(found, ANCHORS[:, [1, 0, 3, 2]])


@pytest.mark.parametrize(
    "names", [("boxes", "classes", "scores", "num"), ("p", "p:1", "p:2", "p:3")]
)
def test_what_a_postprocessor_finished_is_taken_as_it_is(names):
    boxes = np.array([[[0.1, 0.2, 0.3, 0.4], [0.1, 0.2, 0.3, 0.4], [9, 9, 9, 9]]], np.float32)
    classes, scores = np.array([[2.0, 0.0, 7.0]]), np.array([[0.5, 0.75, 0.0]])
    found = decode_ssd(dict(zip(names, (boxes, classes, scores, np.array([2.0])), strict=True)))
    assert found.boxes.tolist() == pytest.approx(np.array([[0.2, 0.1, 0.4, 0.3]] * 2))
    assert (found.scores.tolist(), found.classes.tolist()) == ([0.75, 0.5], [0, 2])


def suppressed_one_by_one(boxes: np.ndarray, scores: np.ndarray) -> list[int]:
    """The indices that stay, best first: the plainest greedy loop."""
    kept: list[int] = []
    for n in np.argsort(-scores, kind="stable"):
        overlaps = []
        for k in kept:
            low, high = (
                np.maximum(boxes[n, :2], boxes[k, :2]),
                np.minimum(boxes[n, 2:], boxes[k, 2:]),
            )
            shared = np.prod(np.maximum(high - low, 0))
            area = [np.prod(box[2:] - box[:2]) for box in (boxes[n], boxes[k])]
            overlaps.append(shared / (sum(area) - shared))
        if all(overlap <= 0.45 for overlap in overlaps):
            kept.append(int(n))
    return kept


def test_every_class_is_suppressed_by_itself():
    random = RandomState(0)
    corner, size = random.uniform(0, 0.6, (60, 2)), random.uniform(0.1, 0.4, (60, 2))
    boxes = np.concatenate([corner, corner + size], 1).astype(np.float32)
    scores = random.uniform(0.02, 1, (60, 3)).astype(np.float32)
    found = decode_ssd({"boxes": boxes[None], "scores": scores[None]})
    for label in (0, 1):
        mine = found.boxes[found.classes == label]
        kept = suppressed_one_by_one(boxes, scores[:, label + 1])
        assert np.array_equal(mine, boxes[kept])


@pytest.mark.skipif(not FACES.is_dir(), reason="shared/data/models is not here")
def test_the_raw_head_of_a_real_model_decodes_to_what_its_decoded_one_gives():
    fed = RandomState(0).uniform(-1, 1, (1, 3, 240, 320)).astype(np.float32)
    raw, decoded = (outputs(f"ultraface_slim320{kind}", fed) for kind in ("_rawhead", ""))
    ours = decode_ssd(raw, ULTRAFACE, anchors_of(ULTRAFACE, {}, (240, 320)))
    theirs = decode_ssd(decoded)
    assert len(ours.scores) == len(theirs.scores) > 100
    np.testing.assert_allclose(ours.boxes, theirs.boxes, atol=1e-5)


def outputs(name: str, fed: np.ndarray) -> dict[str, np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(FACES / f"{name}.onnx", options)
    names = [value.name for value in session.get_outputs()]
    return dict(zip(names, session.run(None, {"input": fed}), strict=True))


@pytest.mark.parametrize(
    ("said", "what"),
    [
        (Ssd(), "anchors must be given exactly once"),
        (Ssd(sizes=((8.0,),), strides=(8, 16)), "anchors must be given exactly once"),
        (Ssd(sizes=((8.0,),), strides=(8,), variances=(0.1,)), "variances are"),
        (Ssd(anchors=FilePath("a.npy")), "no such file"),
        (Ssd(sizes=((8.0,),), strides=(4,)), "4 anchors for 2 boxes"),
    ],
)
def test_what_does_not_fit_is_one_error(said, what):
    with pytest.raises(ProjectError) as caught:
        decode_ssd(one_box(), said, anchors_of(said, {}, (8, 8)))
    assert what in caught.value.what
    assert caught.value.hint


@pytest.mark.parametrize(
    "shapes", [[(1, 5, 3)], [(1, 5, 4), (1, 6, 3)], [(1, 5, 4)] + [(1, 4)] * 3]
)
def test_outputs_that_are_none_are_told_with_their_shapes(shapes):
    arrays = {f"o{n}": np.zeros(shape, np.float32) for n, shape in enumerate(shapes)}
    with pytest.raises(ProjectError, match=r"not SSD outputs: o0 \[1, 5, "):
        decode_ssd(arrays)
