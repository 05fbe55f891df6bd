"""Average precision in a build: pycocotools' figures, on letterboxed pictures."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval
from workspaces import Workspace, lay_out

from pipeline.data.geometry import pad_resize
from pipeline.detection.carriers import metadata_in
from pipeline.detection.decode import decode, rules_for_map
from pipeline.project.transforms import PadResize
from pipeline.runtime import Session

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
        "images": [{"id": n, "file_name": f"{n:03}.png"} for n in range(PICTURES)],
        "categories": [{"id": key, "name": f"c{key}"} for key in CATEGORIES],
        "annotations": [
            {"id": n + 1, "image_id": image, "category_id": ids[label], "iscrowd": 0}
            | {"bbox": [left, top, right - left, low - top], "area": (right - left) * (low - top)}
            for n, (image, label, (left, top, right, low)) in enumerate(annotations)
        ],
    }
    (project / "instances.json").write_text(json.dumps(document))
    (project / "evaluation.yaml").write_text(
        "dataset: {files: val/*.png, labels: instances.json, transforms: [pad_resize]}\n"
        "metric: map50\npostprocess: yolo\n"
    )
    workspace.npumake("build", "shapes-detector:float_score")
    return workspace


def painted(project: Path) -> list[tuple[int, int, list[float]]]:
    """(image, class, corners) of every shape; the pictures are written to val/."""
    import runpy

    scenes = runpy.run_path(str(project / "scenes.py"))["scenes"]
    (project / "val").mkdir()
    found = []
    for number, scene in enumerate(scenes(range(PICTURES))):
        wide = np.full((SIZE, WIDE, 3), 127, np.uint8)
        wide[:, :SIZE] = scene.image
        Image.fromarray(wide).save(project / f"val/{number:03}.png")
        for label, box in zip(scene.labels, scene.boxes, strict=True):
            found.append((number, int(label), [float(side) for side in box]))
    return found


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
        for box, score, label in zip(seen.boxes, seen.scores, seen.classes, strict=True):
            left, right = (float(side) * SIZE / (SIZE / WIDE) for side in box[[0, 2]])
            top, low = ((float(side) * SIZE - offset) / rate for side in box[[1, 3]])
            found.append(
                {"image_id": number, "category_id": ids[label], "score": float(score)}
                | {"bbox": [left, top, right - left, low - top]}
            )
    return found


def test_average_precision_is_that_of_pycocotools(boxed: Workspace) -> None:
    with contextlib.redirect_stdout(io.StringIO()):
        truths = COCO(str(boxed.project / "instances.json"))
        evaluation = COCOeval(truths, truths.loadRes(detections(boxed.project)), "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    found = json.loads((boxed.project / "out/float_score.json").read_text())["by_name"]
    assert found["map50"] / 100 == pytest.approx(evaluation.stats[1], abs=1e-6)
    assert found["map50_95"] / 100 == pytest.approx(evaluation.stats[0], abs=1e-6)
    assert found["map50"] > 40  # two thirds of the size it was trained on


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("postprocess: yolo", "postprocess: none", "an average precision is of boxes"),
        ("pad_resize", "short_side_resize: {short_size: 160}", "boxes are not followed through"),
        ("metric: map50", "metric: top1", "boxes have no top1"),
        ("metric: map50", "metric: map75", "no metric `map75`"),
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
