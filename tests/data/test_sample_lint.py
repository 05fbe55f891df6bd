"""A set of samples is refused for its faults, and for nothing that repeats by nature."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from npumake import digest
from npumake.errors import ProjectError
from npumake.graph import parse_text
from npumake.progress import hearing
from npumake.project.files import SourceFile
from npumake.project.sections import FileGlob, Files, Input
from npumake.stages.samples import samples

RNG = np.random.default_rng(0)
COUNT = 9
NAMES = {"float32": "float", "int64": "int64", "int32": "int32", "bool": "bool"}
DATA = [RNG.normal(size=(1, 2, 8, 4)).astype(np.float32) for _ in range(COUNT)]
MASK = [np.ones((1, 8), np.int64)] * COUNT
IDS = [RNG.integers(0, 500, (1, 8)) for _ in range(COUNT)]
PICTURES = [RNG.normal(size=(1, 3, 8, 8)).astype(np.float32) for _ in range(COUNT)]
EMPTY = [np.zeros((1, 2, 8, 4), np.float32)] * COUNT


def write(folder: Path, arrays: Sequence[np.ndarray], form: str) -> list[Path]:
    folder.mkdir()
    if form == "stack":
        np.save(folder / "all.npy", np.stack(arrays))
    for index, array in enumerate(arrays):
        if form == "npz":
            np.savez(folder / f"{index}.npz", value=array)
        if form == "npy":
            np.save(folder / f"{index}.npy", array)
        if form == "png":
            Image.fromarray(array).save(folder / f"{index}.png")
    return sorted(folder.iterdir())


def lint(folder: Path, inputs: dict[str, Sequence[np.ndarray]], form: str = "npy", **given: Input):
    """What `samples` says of these arrays by input: nothing, or its error. Bytes are pictures."""
    signature, outputs, body = [], [], []
    for name, (first, *_) in inputs.items():
        is_picture = first.dtype == np.uint8
        shape = [1, 3, *first.shape[:2]] if is_picture else [*first.shape]
        kind = "float" if is_picture else NAMES[first.dtype.name]
        signature.append(f"{kind}{shape} {name}")
        outputs.append(f"{kind}{shape} {name}_y")
        body.append(f"{name}_y = Identity({name})")
    graph = parse_text(
        f'<ir_version: 8, opset_import: ["" : 17]>\n'
        f"g ({', '.join(signature)}) => ({', '.join(outputs)}) {{ {' '.join(body)} }}"
    )
    data, sources = {}, {}
    for name, arrays in inputs.items():
        own = "npy" if form == "png" and arrays[0].dtype != np.uint8 else form
        files = write(folder / name, arrays, own)
        data[name] = Files(FileGlob("*"), stacked=own == "stack")
        sources[f"data.{name}.files"] = tuple(
            SourceFile(f.name, str(f), digest.of_file(f)) for f in files
        )
    try:
        samples(graph, given, data, sources)
    except ProjectError as error:
        return error.what, str(error.where)
    return None


@pytest.mark.parametrize("form", ["npy", "npz", "stack"])
@pytest.mark.parametrize(
    "repeating",
    [
        {"mask": MASK},
        {"mask": [mask.astype(np.bool_) for mask in MASK]},
        {"mask": [mask.astype(np.float32) for mask in MASK]},
        {"mask": [np.tri(8)[None, n % 3].astype(np.bool_) for n in range(COUNT)]},
        {"position": [np.array([[n % 2]]) for n in range(COUNT)]},
        {"position": [np.arange(8, dtype=np.int32)[None]] * COUNT},
        {"past_key": EMPTY, "past_value": EMPTY, "mask": MASK},
        {"cos": [np.cos(np.arange(64, dtype=np.float32)).reshape(1, 1, 8, 8)] * COUNT},
    ],
    ids=lambda case: "-".join(case),
)
def test_what_repeats_by_nature_is_no_finding(tmp_path, form, repeating):
    assert lint(tmp_path, {"x": DATA, **repeating}, form) is None
    assert lint(tmp_path / "first", {**repeating, "ids": IDS}, form) is None


@pytest.fixture(autouse=True)
def folder_of_the_second_order(tmp_path):
    (tmp_path / "first").mkdir()


@pytest.mark.parametrize("form", ["npy", "npz", "stack"])
def test_a_sample_that_is_whole_a_copy_is_found(tmp_path, form):
    data, ids = [*DATA[:-1], DATA[2]], [*IDS[:-1], IDS[2]]
    what, where = lint(tmp_path, {"ids": ids, "x": data, "mask": MASK}, form)
    assert (what.partition(":")[0], where) == ("the same sample more than once", "data.x")
    assert what.count("=") == 1
    assert lint(tmp_path / "first", {"ids": IDS, "x": data, "mask": MASK}, form) is None


@pytest.mark.parametrize("others", [{}, {"ids": IDS}, {"ids": IDS, "mask": MASK}])
def test_a_folder_of_one_picture_is_found(tmp_path, others):
    what, where = lint(tmp_path, {"image": [PICTURES[0]] * COUNT, **others})
    assert what.startswith("the same ")
    assert where == "data.image"


@pytest.mark.parametrize("others", [{}, {"ids": IDS}, {"ids": IDS, "mask": MASK}])
@pytest.mark.parametrize("value", [0, 255])
def test_blank_pictures_of_files_are_found(tmp_path, others, value):
    blank = [np.full((8, 8, 3), value, np.uint8)] * COUNT
    what, where = lint(tmp_path, {**others, "image": blank}, "png")
    assert (what[:32], where) == ("samples with one value all over:", "data.image")


def test_blank_gray_pictures_are_found_by_the_type_of_the_input(tmp_path):
    gray = [RNG.normal(size=(1, 1, 8, 8)).astype(np.float32) for _ in range(COUNT - 1)]
    dark = [*gray, np.zeros((1, 1, 8, 8), np.float32)]
    told = lint(tmp_path, {"image": dark, "ids": IDS}, image=Input(type="gray", offset=0))
    assert told == ("samples with one value all over: 8.npy (0)", "data.image")


def test_an_input_that_never_changes_beside_others_is_told(tmp_path):
    lines: list[str] = []
    with hearing(lines.append):
        assert lint(tmp_path, {"ids": IDS, "state": [DATA[0]] * COUNT}) is None
    assert lines == ["`state` is the same in all 9 samples"]
