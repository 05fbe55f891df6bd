"""Bad calibration sets are flagged by name and figure; good ones are left alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from npumake import digest
from npumake.custom.operators import NO_OPERATORS
from npumake.debug.calibration_notes import calibration_notes
from npumake.errors import ProjectError
from npumake.evaluate.artifact_scores import dataset_for
from npumake.graph import Graph, parse_text
from npumake.project.files import SourceFile, SourceFiles, pattern_files
from npumake.project.sections import Calibration, Dataset, Evaluation, FileGlob, Files, Input
from npumake.quant.calibration.statistics import Statistics
from npumake.quant.qdq.insert import DEFAULT
from npumake.quant.search.methods import calibrated_with, ranges_by_method
from npumake.stages.calibration_fit import calibration_fit
from npumake.stages.quantized import quantized
from npumake.stages.samples import samples
from npumake.stages.statistics import statistics
from npumake.targets.reader import read_target
from workspaces import shared_data

Arrays = Sequence[np.ndarray]
Set = tuple[Arrays, Arrays | None, Calibration]  # to calibrate with, to evaluate on, and how
SIZE = 32
MAX = Calibration("max")
PHOTOS = shared_data() / "images"


def scene(rng: np.random.Generator) -> np.ndarray:
    """A picture (1, 3, SIZE, SIZE) of soft shapes: 0..1, of any brightness, contrast and tint."""
    coarse = rng.normal(size=(3, 6, 6)) * 0.5 + rng.normal(size=(1, 6, 6))
    soft = [Image.fromarray(c.astype(np.float32)).resize((SIZE, SIZE)) for c in coarse]
    tint = rng.normal(size=(3, 1, 1)) * 0.06 + rng.uniform(0.35, 0.65)
    shapes = np.stack([np.asarray(plane) for plane in soft]) * rng.uniform(0.1, 0.25) + tint
    return np.clip(shapes + rng.normal(size=shapes.shape) * 0.01, 0, 1).astype(np.float32)[None]


def scenes(seed: int, count: int = 16) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [scene(rng) for _ in range(count)]


def altered(change: Callable[[np.ndarray], np.ndarray], *indices: int) -> list[np.ndarray]:
    """Sixteen scenes, those of `indices` (all by default) changed."""
    chosen = indices or range(16)
    return [change(x) if index in chosen else x for index, x in enumerate(scenes(0))]


def with_values(index: tuple[object, ...], value: float) -> Callable[[np.ndarray], np.ndarray]:
    def change(x: np.ndarray) -> np.ndarray:
        y = x.copy()
        y[index] = value
        return y

    return change


def photos(folder: str, count: int, first: int = 0) -> list[np.ndarray]:
    files = sorted((PHOTOS / folder).glob("*.[jJ]*"))[first : first + count]
    if not files:
        pytest.skip("shared/data/images is not here")
    pixels = [np.asarray(Image.open(f).convert("RGB").resize((SIZE, SIZE))) for f in files]
    return [(p.transpose(2, 0, 1)[None] / 255).astype(np.float32) for p in pixels]


def letterboxed(x: np.ndarray) -> np.ndarray:
    """Bars above and below, as high as the picture is wide of itself."""
    bar = int(x[0, 0, 0, 0] * 12)
    y = x.copy()
    y[:, :, :bar], y[:, :, SIZE - bar :] = 0.45, 0.45
    return y


EVERY = slice(None)
NIGHT = [x * 0.2 for x in scenes(0)]
BAD: dict[str, Callable[[], Set]] = {
    "a sample 1000 times larger": lambda: (altered(lambda x: x * 1000, 5), None, MAX),
    "one pixel of 40": lambda: (altered(with_values((0, 1, 3, 4), 40.0), 2), None, MAX),
    "two wild samples": lambda: (altered(lambda x: x * 60 - 20, 3, 9), None, MAX),
    "one wild channel": lambda: (altered(with_values((0, 2), -30.0), 7), None, MAX),
    "a dead channel": lambda: (altered(with_values((EVERY, 1), 0.0)), None, MAX),
    "a channel of ones": lambda: (altered(with_values((EVERY, 0), 1.0)), None, MAX),
    "a row of padding": lambda: (altered(with_values((EVERY, EVERY, -1), 0.0)), None, MAX),
    "columns of padding": lambda: (
        altered(with_values((EVERY, EVERY, EVERY, slice(0, 4)), 0.5)),
        None,
        MAX,
    ),
    "a blank sample": lambda: (altered(lambda x: np.full_like(x, 0.5), 4), None, MAX),
    "a copy": lambda: ([*scenes(0), scenes(0)[3]], None, MAX),
    "seven samples": lambda: (scenes(0, 7), None, MAX),
    "nine samples for kl": lambda: (scenes(0, 9), None, Calibration("kl")),
    "evaluated on what it was calibrated with": lambda: (scenes(0), scenes(0)[:8], MAX),
    "night, evaluated by day": lambda: (NIGHT, scenes(1, 32), MAX),
    "noise, evaluated on scenes": lambda: (
        list(np.random.default_rng(0).random((16, 1, 3, SIZE, SIZE), np.float32)),
        scenes(1, 32),
        MAX,
    ),
    "outputs beyond the range": lambda: (scenes(0), [x * 4 for x in scenes(1, 32)], MAX),
}
GOOD: dict[str, Callable[[], Set]] = {
    **{
        f"scenes of seed {seed}": lambda seed=seed: (scenes(seed), scenes(seed + 50, 32), MAX)
        for seed in range(6)
    },
    "eight scenes for max": lambda: (scenes(3, 8), None, MAX),
    "a hundred scenes for kl": lambda: (scenes(4, 100), None, Calibration("kl")),
    "photographs": lambda: (photos("imagenet500", 16), photos("imagenet500", 64, 100), MAX),
    "other photographs": lambda: (
        photos("coco128/images", 24),
        photos("coco128/images", 64, 40),
        MAX,
    ),
    "half of them dim": lambda: (altered(lambda x: x * 0.6, *range(8)), None, MAX),
    "letterboxed": lambda: ([letterboxed(x) for x in scenes(5)], None, MAX),
    "one all dark": lambda: (altered(lambda x: x * 0.05, 3), None, MAX),
    "normal numbers": lambda: (
        list(np.random.default_rng(1).normal(size=(16, 1, 3, SIZE, SIZE)).astype(np.float32)),
        None,
        MAX,
    ),
    "heavy tails": lambda: (
        list(np.random.default_rng(2).lognormal(size=(32, 1, 3, SIZE, SIZE)).astype(np.float32)),
        None,
        MAX,
    ),
    "loud and quiet": lambda: (
        [x * 10 ** (-index / 6) for index, x in enumerate(scenes(6, 18))],
        None,
        MAX,
    ),
}


@pytest.fixture(scope="module")
def graph() -> Graph:
    rng = np.random.default_rng(0)
    weights = ", ".join(f"{w:.3f}" for w in rng.normal(size=4 * 3 * 9))
    return parse_text(
        '<ir_version: 8, opset_import: ["" : 17]>'
        f"net (float[1,3,{SIZE},{SIZE}] x) => (float[1,4,1,1] y) "
        f"<float[4,3,3,3] w = {{{weights}}}> "
        "{ h = Conv(x, w)  r = Relu(h)  y = GlobalAveragePool(r) }"
    )


def files_of(arrays: Arrays, folder: Path) -> tuple[SourceFile, ...]:
    folder.mkdir()
    for index, array in enumerate(arrays):
        np.save(folder / f"{index:03}.npy", array.astype(np.float32))
    return tuple(
        SourceFile(name, path, digest.of_file(Path(path)))
        for name, path in pattern_files(folder, "*")
    )


def flagged(graph: Graph, given: Set, folder: Path) -> str:
    """What a build says of the set; nothing where it finds nothing."""
    arrays, others, calibration = given
    inputs, data = {"x": Input()}, {"x": Files(FileGlob("*"))}
    sources: SourceFiles = {"data.x.files": files_of(arrays, folder / "calibration")}
    try:
        fed = samples(graph, inputs, data, sources)
    except ProjectError as error:
        return error.what
    known = statistics(graph, fed)
    notes = [*calibration_notes(_quantized(graph, known, calibration), known, fed, calibration)]
    if others is not None:
        labels = json.dumps({f"{index:03}.npy": 0 for index in range(len(others))}).encode()
        (folder / "labels.json").write_bytes(labels)
        path = str(folder / "labels.json")
        sources = sources | {
            "evaluation.dataset.files": files_of(others, folder / "evaluation"),
            "evaluation.dataset.labels": (
                SourceFile("labels.json", path, digest.of_bytes(labels)),
            ),
        }
        asked = Evaluation(Dataset(FileGlob("*"), labels=path))
        dataset = dataset_for(graph, inputs, data, asked, sources, NO_OPERATORS)
        notes += calibration_fit(graph, fed, known, dataset, sources).notes
    return "; ".join(notes)


def _quantized(graph: Graph, known: Statistics, calibration: Calibration) -> Graph:
    target = read_target("tflite")
    recipe = ranges_by_method(graph, known, calibration, symmetric=False)
    return quantized(calibrated_with(graph, recipe, target, DEFAULT), target)


@pytest.mark.parametrize("name", BAD)
def test_a_bad_set_is_flagged(graph, name, tmp_path):
    assert flagged(graph, BAD[name](), tmp_path)


@pytest.mark.slow
def test_at_most_one_good_set_of_sixteen_is_flagged(graph, tmp_path):
    found = {}
    for index, (name, given) in enumerate(GOOD.items()):
        (tmp_path / str(index)).mkdir()
        found[name] = flagged(graph, given(), tmp_path / str(index))
    assert len(found) == 16
    assert sum(map(bool, found.values())) <= 1, found


def test_a_finding_names_the_sample_and_its_range(graph, tmp_path):
    what = flagged(graph, (altered(with_values((0, 1, 3, 4), 40.0), 2), None, MAX), tmp_path)
    assert "002.npy (channel 1" in what or "002.npy (" in what
    assert "..40" in what
