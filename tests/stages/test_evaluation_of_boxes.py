"""Average precision of boxes and masks in a build: pycocotools' figures, pictures letterboxed."""

from __future__ import annotations

import contextlib
import io
import json
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from pycocotools import mask as runs
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from npumake.data.geometry import pad_resize
from npumake.detection.carriers import metadata_in
from npumake.detection.decode import decode, rules_for_map
from npumake.project.transforms import PadResize
from npumake.runtime import Session
from workspaces import Workspace, lay_out

SIZE, WIDE, PICTURES = 160, 240, 24
CATEGORIES = (11, 2, 7, 5, 3)  # ids in no order: the model's classes are in theirs

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def boxed(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Scenes on wide pictures, their boxes in COCO's form, and the float model evaluated."""
    workspace = lay_out(tmp_path_factory.mktemp("boxes") / "w", "shapes-detector")
    project = workspace.project
    annotations = painted(project)
    ids = sorted(CATEGORIES)
    document = {
        "images": [
            {"id": n, "file_name": f"{n:03}.png", "height": SIZE, "width": WIDE}
            for n in range(PICTURES)
        ],
        "categories": [{"id": key, "name": f"c{key}"} for key in CATEGORIES],
        "annotations": [
            {"id": n + 1, "image_id": image, "category_id": ids[label], "iscrowd": 0}
            | {"bbox": [left, top, right - left, low - top], "area": (right - left) * (low - top)}
            | {"segmentation": segmentation}
            for n, (image, label, (left, top, right, low), segmentation) in enumerate(annotations)
        ],
    }
    (project / "instances.json").write_text(json.dumps(document))
    (project / "evaluation.yaml").write_text(
        "dataset: {files: val/*.png, labels: instances.json, transforms: [pad_resize]}\n"
        "metric: map50\npostprocess: yolo\n"
    )
    workspace.npumake("build", "shapes-detector:float_score")
    return workspace


def painted(project: Path) -> list[tuple[int, int, list[float], object]]:
    """(image, class, corners, segmentation) of every shape; the pictures are written to val/."""
    import runpy

    scenes = runpy.run_path(str(project / "scenes.py"))["scenes"]
    (project / "val").mkdir()
    found = []
    for number, scene in enumerate(scenes(range(PICTURES))):
        wide = np.full((SIZE, WIDE, 3), 127, np.uint8)
        wide[:, :SIZE] = scene.image
        Image.fromarray(wide).save(project / f"val/{number:03}.png")
        for label, box, mask in zip(scene.labels, scene.boxes, scene.masks, strict=True):
            whole = np.zeros((SIZE, WIDE), np.uint8, order="F")
            whole[:, :SIZE] = mask
            corners = [float(side) for side in box]
            found.append((number, int(label), corners, segmentation(whole, corners, number % 3)))
    return found


def segmentation(mask: np.ndarray, corners: list[float], form: int) -> object:
    """As text, as numbers, or for the third the box as a polygon."""
    left, top, right, low = corners
    if form == 2:
        return [[left, top, right, top, right, low, left, low]]
    made = runs.encode(mask)
    if form == 1:
        return {"size": made["size"], "counts": made["counts"].decode()}
    turns = np.flatnonzero(np.diff(np.concatenate([[0], mask.ravel("F")])))
    counts = np.diff(np.concatenate([[0], turns, [mask.size]])).tolist()
    return {"size": made["size"], "counts": counts}


@pytest.fixture(scope="module")
def found_outside(boxed: Workspace) -> list[dict[str, object]]:
    return detections(boxed.project)


def detections(project: Path) -> list[dict[str, object]]:
    """What the float model says of every picture, in pixels, made without the evaluation."""
    path = project / "out/original_float.onnx"
    session, metadata = Session(path), metadata_in(path)
    assert metadata is not None
    ids, found = sorted(CATEGORIES), []
    for number in range(PICTURES):
        picture = np.asarray(Image.open(project / f"val/{number:03}.png"))
        fed = pad_resize(picture, PadResize(target_size=SIZE)).transpose(2, 0, 1)[None] - 128
        arrays = session.run(None, {session.input_names[0]: fed.astype(np.float32)})
        named = dict(zip(session.output_names, arrays, strict=True))
        seen = decode(named, metadata.outputs, (SIZE, SIZE), rules_for_map(metadata))
        inner = int(SIZE * SIZE / WIDE)  # rows of the letterbox that hold the picture
        offset, rate = (SIZE - inner) // 2, inner / SIZE
        masks = in_picture(seen.coefficients, seen.protos, offset, rate)
        for box, score, label, mask in zip(
            seen.boxes, seen.scores, seen.classes, masks, strict=True
        ):
            left, right = (float(side) * SIZE / (SIZE / WIDE) for side in box[[0, 2]])
            top, low = ((float(side) * SIZE - offset) / rate for side in box[[1, 3]])
            y, x = np.mgrid[:SIZE, :WIDE] + 0.5
            inside = mask & (x >= left) & (x < right) & (y >= top) & (y < low)
            found.append(
                {"image_id": number, "category_id": ids[label], "score": float(score)}
                | {"bbox": [left, top, right - left, low - top]}
                | {"segmentation": runs.encode(np.asfortranarray(inside, np.uint8))}
            )
    return found


def in_picture(
    coefficients: np.ndarray, protos: np.ndarray, offset: float, rate: float
) -> np.ndarray:
    """(n, SIZE, WIDE): the cells' numbers read linearly at every pixel's middle, above 0."""
    cells = protos.shape[1]
    share = cells / SIZE
    rows = ((np.arange(SIZE) + 0.5) * rate + offset) * share - 0.5
    columns = (np.arange(WIDE) + 0.5) * (SIZE / WIDE) * share - 0.5
    reads = [
        np.stack([np.interp(at, np.arange(cells), line) for line in np.eye(cells)], 1)
        for at in (rows, columns)
    ]
    logits = np.tensordot(coefficients, protos, 1)
    return np.stack([reads[0] @ each @ reads[1].T > 0 for each in logits])


@pytest.mark.parametrize(("kind", "prefix"), [("bbox", ""), ("segm", "mask_")])
def test_average_precision_is_that_of_pycocotools(
    boxed: Workspace, found_outside: list[dict[str, object]], kind: str, prefix: str
) -> None:
    with contextlib.redirect_stdout(io.StringIO()):
        truths = COCO(str(boxed.project / "instances.json"))
        evaluation = COCOeval(truths, truths.loadRes(deepcopy(found_outside)), kind)
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    edit(boxed, "metric: map50", f"metric: {prefix}map50")
    boxed.npumake("build", "shapes-detector:float_score")
    edit(boxed, f"metric: {prefix}map50", "metric: map50")
    found = json.loads((boxed.project / "out/float_score.json").read_text())["by_name"]
    assert found[f"{prefix}map50"] / 100 == pytest.approx(evaluation.stats[1], abs=1e-6)
    assert found[f"{prefix}map50_95"] / 100 == pytest.approx(evaluation.stats[0], abs=1e-6)
    assert found[f"{prefix}map50"] > 35  # two thirds of the size it was trained on


def edit(workspace: Workspace, old: str, new: str) -> None:
    path = workspace.project / "evaluation.yaml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("postprocess: yolo", "postprocess: none", "average precision needs boxes"),
        (
            "pad_resize",
            "short_side_resize: {short_size: 160}",
            "boxes cannot be mapped back through",
        ),
        ("metric: map50", "metric: top1", "boxes have no top1"),
        ("metric: map50", "metric: map75", "unknown metric `map75`"),
        (
            "metric: map50\npostprocess: yolo",
            "metric: mask_map50\npostprocess: ssd",
            "not SSD outputs",
        ),
    ],
)
def test_what_does_not_go_together_is_one_error(
    boxed: Workspace, old: str, new: str, said: str
) -> None:
    yaml = boxed.project / "evaluation.yaml"
    text = yaml.read_text()
    assert old in text
    yaml.write_text(text.replace(old, new))
    run = boxed.npumake("build", "shapes-detector:float_score", check=False)
    yaml.write_text(text)
    assert (run.returncode, run.stdout.count("error:")) == (2, 1)
    assert said in run.stdout
