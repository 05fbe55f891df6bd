"""A model fed otherwise than it was trained is noticed, and its mistake is named."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from npumake import digest
from npumake.data.samples import Samples
from npumake.debug.preprocessing import MIN_SAMPLES, distance, preprocessing_mistake
from npumake.errors import ProjectError
from npumake.graph import Graph, parse_text
from npumake.project.files import SourceFile
from npumake.project.sections import FileGlob, FilePath, Files, Input, ModelSection
from npumake.project.transforms import Resize, Scale, Transform
from npumake.stages.original_float import original_float
from npumake.stages.samples import samples
from workspaces import REPO, few, shared_data

DATA = shared_data()
DIGITS = REPO / "projects" / "digits"
ULTRAFACE = DATA / "models/detection/ultraface_slim320.onnx"
OCR = DATA / "models/ocr/ppocr_mobile_v2_cls.onnx"
COCO = sorted((DATA / "images/coco128/images").rglob("*.jpg"))[:96]
IMAGENET = sorted((DATA / "images/imagenet500").rglob("*.[jJ]*"))[:96]
STRETCH: Transform = {"resize": Resize(mode="opencv")}
PICTURE = Files(FileGlob("x"), transforms=(STRETCH,))
real = pytest.mark.skipif(not ULTRAFACE.is_file(), reason="shared/data is not here")


def source(path: Path) -> SourceFile:
    return SourceFile(path.name, str(path), digest.of_file(path))


@cache
def read(model: Path, name: str, fed: Input) -> Graph:
    """Nobody here writes into it."""
    return original_float(
        ModelSection(FilePath("m")), {name: fed}, {"model.path": (source(model),)}
    )


def made(model: Path, files: list[Path], name: str, fed: Input, how: Files = PICTURE) -> Samples:
    graph = read(model, name, fed)
    found = {f"data.{name}.files": tuple(map(source, files))}
    return samples(graph, {name: fed}, {name: how}, found)


def mistake(model: Path, files: list[Path], name: str, fed: Input, how: Files = PICTURE) -> str:
    with pytest.raises(ProjectError, match="differs from training: ") as caught:
        made(model, files, name, fed, how)
    assert caught.value.where == f"inputs.{name}"
    return caught.value.what.partition("training: ")[2]


FACE = Input(mean=127.0, scale=1 / 128)
LINE = Input(shape=(1, 3, 48, 192), mean=127.5, scale=1 / 127.5)
RIGHT = {
    "digits": (DIGITS / "model.onnx", "image", Input(scale=1 / 16, offset=128)),
    "ultraface": (ULTRAFACE, "input", FACE),
    "ocr": (OCR, "x", LINE),
}
DRAWN = sorted((DIGITS / "samples").glob("*.npy"))
PLAIN = Files(FileGlob("x"))


def test_the_digits_are_fed_right():
    model, name, fed = RIGHT["digits"]
    assert len(made(model, DRAWN, name, fed, PLAIN)) == 64


@pytest.mark.parametrize(
    ("fed", "how", "what"),
    [
        (Input(scale=1 / 16 * 255, offset=128), PLAIN, "the values are 255 times too large"),
        (Input(scale=1 / 16 / 255, offset=128), PLAIN, "the values are 255 times too small"),
        (
            Input(scale=1 / 16, offset=128),
            replace(PLAIN, transforms=({"scale": Scale(1 / 16)},)),
            "mean and scale are applied twice",
        ),
    ],
)
def test_a_mistake_with_the_digits_is_named(fed, how, what):
    assert mistake(DIGITS / "model.onnx", DRAWN, "image", fed, how) == what


def test_a_finding_can_be_waived():
    how = replace(PLAIN, allow=("preprocessing",))
    assert (
        len(made(DIGITS / "model.onnx", DRAWN, "image", Input(scale=16.0, offset=128), how)) == 64
    )


def test_too_few_samples_tell_nothing():
    wrong = Input(scale=16.0, offset=128)
    assert len(made(DIGITS / "model.onnx", DRAWN[: MIN_SAMPLES - 1], "image", wrong, PLAIN)) == 15


def test_a_memory_behind_a_custom_operator_tells_nothing():
    graph = parse_text("""<ir_version: 9, opset_import: ["" : 17, "my" : 1]>
        agraph (float[1,2,2,2] x) => (float[1,2,2,2] y)
            <float[2] g = {1, 1}, float[2] b = {0, 0}, float[2] m = {9, 9}, float[2] v = {1, 1}> {
            a = my.Anything(x)  y = BatchNormalization(a, g, b, m, v) }""")
    drawn = np.ones((1, 2, 2, 2), np.float32)
    found = Samples(tuple(map(str, range(MIN_SAMPLES))), lambda index: {"x": drawn})
    assert preprocessing_mistake(graph, found, "x", Input(), 0) is None


@real
@pytest.mark.slow
@pytest.mark.parametrize("model", ["ultraface", "ocr"])
@pytest.mark.parametrize("images", [COCO, IMAGENET], ids=["coco", "imagenet"])
@pytest.mark.parametrize("part", [np.s_[:16], np.s_[1::3]], ids=str)
def test_photographs_fed_right_are_left_alone(model, images, part):
    file, name, fed = RIGHT[model]
    assert made(file, images[part], name, fed)


@real
@pytest.mark.slow
@pytest.mark.parametrize("model", ["ultraface", "ocr"])
@pytest.mark.parametrize(
    ("change", "how", "what"),
    [
        ({"scale": 2.0, "mean": 0.5}, PICTURE, "the values are 255 times too large"),
        ({}, replace(PICTURE, values="0..1"), "the values are 255 times too small"),
        ({"mean": 0.0, "scale": 1.0}, PICTURE, "the values are not normalized"),
    ],
)
def test_a_wrong_scale_is_named(model, change, how, what):
    file, name, fed = RIGHT[model]
    assert mistake(file, COCO[::2], name, replace(fed, **change), how) == what


@real
@pytest.mark.slow
@pytest.mark.parametrize("model", ["ultraface", "ocr"])
def test_what_is_done_twice_is_named(model, tmp_path):
    file, name, fed = RIGHT[model]
    right = made(file, COCO[::2], name, fed)
    once = [(feed[name] - fed.mean) * np.float32(fed.scale) for feed in right]
    files = written(tmp_path, once)
    assert mistake(file, files, name, fed, PLAIN) == "mean and scale are applied twice"


@real
@pytest.mark.slow
@pytest.mark.parametrize("model", ["ultraface", "ocr"])
def test_a_layout_read_wrong_is_named(model, tmp_path):
    """Bare numbers say nothing about their axes."""
    file, name, fed = RIGHT[model]
    right = made(file, COCO[::2], name, fed)
    files = written(tmp_path, [feed[name].transpose(0, 2, 3, 1) for feed in right], "bin")
    assert mistake(file, files, name, fed, PLAIN) == "the channels are in another place"


@real
@pytest.mark.slow
@pytest.mark.parametrize("images", few([COCO, IMAGENET], lambda images: images == IMAGENET))
def test_red_for_blue_is_named(images):
    file, name, fed = RIGHT["ultraface"]
    swapped = replace(PICTURE, channels="bgr")
    assert mistake(file, images, name, fed, swapped) == "red and blue are swapped"


def written(folder: Path, arrays: list[np.ndarray], suffix: str = "npy") -> list[Path]:
    files = [folder / f"{index:03}.{suffix}" for index in range(len(arrays))]
    for path, array in zip(files, arrays, strict=True):
        if suffix == "npy":
            np.save(path, array.astype(np.float32))
        else:
            path.write_bytes(array.astype("<f4").tobytes())
    return files


def test_equal_channels_have_no_distance():
    mean, variance = np.array([0.0, 3.0]), np.array([1.0, 2.0])
    assert distance(mean, variance, mean, variance) == 0
    assert distance(mean + 1, variance, mean, variance) > 0
    assert distance(mean, 4 * variance, mean, variance) == pytest.approx(np.log(2.125))
