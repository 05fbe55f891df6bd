"""Of several ways to feed a classifier its answers tell which it was trained with."""

from __future__ import annotations

import shutil
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from debug.test_preprocessing import (
    COCO,
    DATA,
    DIGITS,
    DRAWN,
    IMAGENET,
    LINE,
    PICTURE,
    PLAIN,
    made,
    read,
    real,
)
from forks import run_npumake
from npumake.borders.inputs import model_inputs
from npumake.data.samples import Samples
from npumake.debug.sharpness import SWAPPED, SharpnessTrial, clearly_better, sharpest
from npumake.graph import parse_text
from npumake.project.sections import FileGlob, Files, Input
from npumake.project.transforms import Resize
from workspaces import Workspace, few

CLASSIFIERS = DATA / "models" / "classification"
MOBILENET = CLASSIFIERS / "mobilenet_v1_0.25_224_float.tflite"
SQUEEZENET = CLASSIFIERS / "squeezenet1.1_winml_fp32_DERIVED.onnx"
BGR = Files(FileGlob("x"), transforms=({"resize": Resize(mode="opencv")},), channels="bgr")
UNIT = Input(mean=127.5, scale=1 / 127.5, layout="NHWC", type="rgb")
BYTES = Input(mean=(103.939, 116.779, 123.68), type="bgr")
CIFAR = CLASSIFIERS / "cifar10_resnet8_float.tflite"
DIGIT = DIGITS / "model.onnx"
RIGHT = [
    (MOBILENET, UNIT, IMAGENET, PICTURE),
    (MOBILENET, UNIT, COCO, PICTURE),
    (SQUEEZENET, BYTES, IMAGENET, BGR),
    (CLASSIFIERS / "vww_96_float.tflite", Input(scale=1 / 255, layout="NHWC"), COCO, PICTURE),
    (CIFAR, Input(layout="NHWC"), COCO, PICTURE),
    (CIFAR, Input(layout="NHWC"), IMAGENET, PICTURE),
    (DATA / "models/ocr/ppocr_mobile_v2_cls.onnx", LINE, COCO, PICTURE),
    (DIGIT, Input(scale=1 / 16, offset=128), DRAWN, PLAIN),
]
WRONG = [
    Input(layout="NHWC", type="rgb"),  # not normalized
    Input(mean=127.5, scale=1 / 127.5 / 255, layout="NHWC", type="rgb"),
    Input(mean=0.5, scale=2.0, layout="NHWC", type="rgb"),  # meant for 0..1
]


def tried(
    model: Path, fed: Input, files: list[Path], how: Files = PICTURE
) -> tuple[SharpnessTrial, ...]:
    graph = read(model, "*", fed)
    ((name, given),) = model_inputs(graph, {"*": fed}).items()
    return sharpest(graph, made(model, files, name, fed, how), name, fed, given.spec.offset)


@cache
def tried_right(case: int) -> tuple[SharpnessTrial, ...]:
    return tried(*RIGHT[case])


def is_brief(case: int) -> bool:
    return case == 0 or RIGHT[case][0] in (CIFAR, DIGIT)


@real
@pytest.mark.slow
@pytest.mark.parametrize("case", few(range(len(RIGHT)), is_brief))
def test_a_classifier_fed_right_is_left_alone(case: int) -> None:
    found = tried_right(case)
    assert found
    assert clearly_better(found) is None


@real
@pytest.mark.slow
@pytest.mark.parametrize(
    ("wrong", "files"),
    few(product(WRONG, (IMAGENET, COCO)), lambda case: case == (WRONG[0], IMAGENET)),
)
def test_a_classifier_fed_wrong_is_told_the_way_it_was_trained(
    wrong: Input, files: list[Path]
) -> None:
    best = clearly_better(tried(MOBILENET, wrong, files))
    assert best is not None
    assert best.yaml == "mean: 127.5, scale: 0.00784314"


@real
@pytest.mark.slow
def test_red_and_blue_are_told_apart():
    known = {one.yaml: one.sharpness for one in tried_right(0)}
    assert known[""] > known["mean: 127.5, scale: 0.00784314" + SWAPPED]


def test_a_detector_tells_nothing():
    graph = parse_text("""<ir_version: 9, opset_import: ["" : 17]>
        agraph (float[1,3,8,8] x) => (float[1,3,8,8] y) { y = Sigmoid(x) }""")
    zeros = np.zeros((1, 3, 8, 8), np.float32)
    few = Samples(tuple(map(str, range(8))), lambda _: {"x": zeros})
    assert sharpest(graph, few, "x", Input(), 0) == ()


def test_where_no_way_is_sharp_none_is_better():
    assert (
        clearly_better((SharpnessTrial("mean: 0, scale: 1", 0.2), SharpnessTrial("", 0.01))) is None
    )


@pytest.mark.slow
def test_the_verb_tells_it(fresh: Workspace) -> None:
    said = fresh.npumake("debug", "inputs", "digits:rdk-x5").stdout
    assert "(as in the project)" in said
    assert said.splitlines()[-1] == "no other way is better"


@real
@pytest.mark.slow
def test_swapped_colours_are_told_by_the_verb(tmp_path: Path) -> None:
    """They change too little for a clear word."""
    for path in IMAGENET[:24]:
        shutil.copy(path, tmp_path)
    (tmp_path / "project.yaml").write_text(f"""
model: {{path: {MOBILENET}}}
inputs: {{"*": {{type: rgb, layout: NHWC, mean: 127.5, scale: 0.0078431373}}}}
data: {{"*": {{files: "*.[jJ]*", channels: bgr, transforms: [resize]}}}}
targets: [ara240]
""")
    said = run_npumake("debug", "inputs", ".", folder=tmp_path).stdout
    assert said.splitlines()[-1] == (
        "sharper, but not clearly: mean: 127.5, scale: 0.00784314, red and blue swapped; "
        "an evaluation with labels decides"
    )
