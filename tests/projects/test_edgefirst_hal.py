"""EdgeFirst's own decoder reads what ara240 bundles say of themselves, and finds our boxes.

The decoder takes `edgefirst.json` and the codes of a bundle, nothing else of ours.
"""

from __future__ import annotations

import itertools
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from data.snapshots import pictures
from detection.heads import SIDE, head, hint, props
from npumake.bundle.archive import Bundle
from npumake.data.samples import Samples
from npumake.detection.carriers import metadata_in
from npumake.detection.decode import Detections, Rules, _parts, decode
from npumake.detection.metadata import Metadata
from npumake.dialects.edgefirst.dialect import METHOD, WIDE
from npumake.engine.reference import ReferenceSession
from npumake.kernels.boxes import corners
from npumake.project.compiling import Compile
from npumake.project.sections import Calibration, Quantization, Security
from npumake.quant.calibration.observe import observe
from npumake.stages.calibrated import calibrated
from npumake.stages.compiled import compiled
from npumake.stages.optimized_float import optimized_float
from npumake.stages.quantized import quantized
from npumake.stages.recipe import recipe
from npumake.targets.reader import read_target
from stages.test_detector import made
from workspaces import few

hal = pytest.importorskip("edgefirst_hal", reason="edgefirst-hal, EdgeFirst's decoder, is absent")

SCORE, IOU = 0.4, 0.7
NEAR = 1e-5  # of the picture's side: both decode the same codes in float32
BINS = 2  # boxes of a cell or two, as a trained head has them


class Case(NamedTuple):
    mode: str
    masks: bool
    split: str  # flat, scales, combined, or bare: no metadata at all
    classes: int = 3
    normalized: bool = True
    points: int = 0  # keypoints, which that decoder leaves alone

    def __str__(self) -> str:
        kind = "seg" if self.masks else "pose" if self.points else "det"
        boxes = "unit" if self.normalized else "pixels"
        return f"{self.mode}-{kind}-{self.split}-{self.classes}-{boxes}"


MODES, SPLITS = ("int8", "int16_smart"), ("flat", "scales", "combined", "bare")
EVERY = [
    Case(*case)
    for case in itertools.product(MODES, (False, True), SPLITS, (1, 2, 3, 4, 80), (True, False))
]
EVERY += [
    Case(mode, False, split, classes, normalized, 5)
    for mode, split, classes, normalized in itertools.product(
        MODES, SPLITS[:2], (1, 3), (True, False)
    )
]
CASES = few(
    EVERY,
    lambda case: (
        case[3:5] == (3, True) or case == ("int8", True, case.split, 1, False, case.points)
    ),
)


def bundle_of(case: Case, folder: Path) -> Path:
    """The bundle that the form makes of a head."""
    shape: dict[str, Any] = {
        "masks": case.masks,
        "classes": case.classes,
        "points": case.points,
    }
    hints = [hint(strides=case.split == "scales", **shape)] if case.split in SPLITS[:2] else []
    metadata = {} if case.split == "bare" else {"edgefirst": props(split_hints=hints)}
    model = head(bins=BINS, normalized=case.normalized, **shape, **metadata)
    graph = optimized_float(made(folder, model, split="hints"))
    feeds = [{"images": picture[None].astype(np.float32) - 128} for picture in PICTURES]
    samples = Samples(tuple(map(str, range(len(feeds)))), feeds.__getitem__)
    target, calibration = read_target("ara240"), Calibration(METHOD)
    types = dict.fromkeys(WIDE, "int16") if case.mode == "int16_smart" else {}
    asked = Quantization(types=types)  # type: ignore[arg-type]
    found = recipe(graph, observe(graph, feeds), samples, calibration, target, quantization=asked)
    integers = quantized(calibrated(graph, found, samples, target, quantization=asked), target)
    path = folder / "model.hybrid"
    compiled(integers, target, Compile(), Security()).save(path)
    return path


PICTURES = pictures(9, (3, SIDE, SIDE))


def handed_out(bundle: Path) -> dict[str, np.ndarray]:
    """What the chip gives for the first picture: codes, and real numbers of what the CPU makes."""
    program = Bundle.load(bundle).program
    dequantized = {
        step.outputs[0]: step.inputs[0] for step in program.instructions if step.op == "dequantize"
    }
    codes = [dequantized.get(name, name) for name in program.outputs]
    feed = {"images": PICTURES[:1].astype(np.float32) - 128}
    return dict(zip(program.outputs, ReferenceSession(program).run(codes, feed), strict=True))


def decoded_by_hal(bundle: Path, arrays: dict[str, np.ndarray], metadata: Metadata) -> Any:
    """(boxes in 0..1, scores, classes, masks) by EdgeFirst's decoder."""
    with zipfile.ZipFile(bundle) as archive:
        document = archive.read("edgefirst.json").decode()
    decoder = hal.Decoder.new_from_json_str(document, SCORE, IOU)
    decoder.pre_nms_top_k = 0
    grids = {t.name: t.quantization for output in metadata.outputs for t in output.tensors}
    tensors = []
    for name, array in arrays.items():
        tensor = hal.Tensor(list(array.shape), array.dtype.name, hal.TensorMemory.MEM, name)
        tensor.from_numpy(np.ascontiguousarray(array))
        if (grid := grids[name]) is not None:
            tensor.set_quantization_per_tensor(grid.scale[0], grid.zero_point[0])
        tensors.append(tensor)
    boxes, scores, classes, masks = decoder.decode(tensors, 300)
    assert decoder.input_dims == (SIDE, SIDE)
    # Detectors alone are given as the metadata has them, for the caller to divide.
    size = SIDE if decoder.normalized_boxes is False else 1
    return np.asarray(boxes) / size, np.asarray(scores), np.asarray(classes), masks


def in_order(boxes: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Rows of score and box; equal scores are common among codes."""
    rows = np.column_stack([scores, boxes]).astype(np.float64)
    return rows[np.lexsort(np.round(rows, 4).T[::-1])]


def is_best(arrays: dict[str, np.ndarray], metadata: Metadata, box: np.ndarray, kind: int) -> bool:
    """Whether no class has a higher score there: of several alike a decoder may take any."""
    described = {output.type: output for output in metadata.outputs if output.type}
    parts = _parts(arrays, described, (SIDE, SIDE))
    away = np.abs(corners(parts["boxes"]) - box).max(1)
    there = parts["scores"][:, np.flatnonzero(away < NEAR)]
    return bool((there[kind] == there.max(0)).any())


def ours(arrays: dict[str, np.ndarray], metadata: Metadata) -> Detections:
    return decode(arrays, metadata.outputs, (SIDE, SIDE), Rules(SCORE, IOU, 0))


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=str)
def test_edgefirsts_decoder_finds_our_boxes(tmp_path: Path, case: Case) -> None:
    bundle = bundle_of(case, tmp_path)
    metadata = metadata_in(bundle)
    assert metadata is not None
    arrays = handed_out(bundle)
    tensors = {tensor.name: tensor for output in metadata.outputs for tensor in output.tensors}
    assert {n: (a.shape, a.dtype.name) for n, a in arrays.items()} == {
        name: (tensor.shape, tensor.dtype) for name, tensor in tensors.items()
    }
    boxes, scores, classes, masks = decoded_by_hal(bundle, arrays, metadata)
    expected = ours(arrays, metadata)
    assert len(expected.boxes) > 0
    np.testing.assert_allclose(
        in_order(boxes, scores), in_order(expected.boxes, expected.scores), atol=NEAR
    )
    found = zip(boxes, classes, strict=True)
    assert all(is_best(arrays, metadata, box, kind) for box, kind in found)
    assert len(masks) == (len(boxes) if case.masks else 0)
    if case.points:  # handed out, and typed as nothing that a decoder would take for classes
        assert None in {output.type for output in metadata.outputs}
