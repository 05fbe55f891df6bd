"""A calibration snapshot is checked in the documented order; what is first wrong is the error."""

from __future__ import annotations

import hashlib
import json
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from data.snapshots import PARAMS, SIZE, pictures, write
from npumake.data import snapshot
from npumake.data.snapshot import CARRIED, NEEDED, read_snapshot
from npumake.detection.metadata import Tiling
from npumake.errors import ProjectError

GRID = {"algorithm": "evendist", "version": 1, "min_overlap": 0.1}
TILED = Tiling("tiled")


def error(path: Path, tiling: Tiling | None = None, size: tuple[int, int] = SIZE) -> str:
    with pytest.raises(ProjectError) as caught:
        read_snapshot(path, size, tiling)
    return f"{caught.value.what} ({caught.value.where})"


def test_a_snapshot_is_the_samples_that_were_stored(tmp_path):
    found = read_snapshot(write(tmp_path), SIZE)
    assert (found.names, found.count, found.remarks) == (("images",), 9, ())
    for index, picture in enumerate(pictures()):
        np.testing.assert_array_equal(found.sample("images", index), picture)


def test_it_says_which_normalization_it_was_made_for(tmp_path):
    given = {"scale": 1 / 255, "mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}
    found = read_snapshot(write(tmp_path, {"normalization": given}), SIZE).normalization
    assert found.is_that_of((123.675, 116.28, 103.53), (0.0171248, 0.0175070, 0.0174292))
    assert not found.is_that_of((123.675, 116.28, 103.63), (0.0171248, 0.0175070, 0.0174292))
    assert not found.is_that_of((123.675, 116.28), 1 / 255)
    assert read_snapshot(write(tmp_path), SIZE).normalization.is_that_of(0.0, 1 / 255)


def test_geometry_is_what_a_converter_notes(tmp_path):
    path = write(tmp_path, {"resize": "tiled", "grid": GRID, "full_frame": True})
    found = read_snapshot(path, SIZE, Tiling("tiled", full_frame=True))
    assert found.geometry == {"resize": "tiled", "input_shape": [*SIZE], "full_frame": True}


@pytest.mark.parametrize(
    ("params", "said", "message"),
    [
        ({}, {"params": None}, "`params` is missing"),
        ({}, {"params": "[]"}, "the JSON must be an object"),
        ({}, {"params": "{"}, "not readable JSON"),
        ({"input_shape": None}, {}, "`input_shape` is missing"),
        ({"resize": None}, {}, "`resize` is missing"),
        ({"input_shape": [16]}, {}, "must be [height, width]"),
        ({"input_shape": [16, 0]}, {}, "`input_shape` must be a list of sizes"),
        ({"input_shape": [24, 16]}, {}, "for an input of 24 x 16, the model's is 16 x 24"),
    ],
)
def test_rule_1_parameters_that_fit_the_model(tmp_path, params, said, message):
    path = write(tmp_path, params, {"tensor_names": "[]", **said})  # and no tensor is looked at
    assert message in error(path)


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ({}, "must name tensors"),
        ({"images": pictures(size=(3, 16))}, "rank 3, not 4"),
        ({"images": pictures(size=(1, 3, 16, 24))}, "rank 5, not 4"),
        ({"images": pictures(size=(3, 16, 23))}, "samples of 16 x 23"),
        ({"images": pictures(size=(3, 24, 16))}, "samples of 24 x 16"),
    ],
)
def test_rule_2_samples_of_that_size(tmp_path, tensors, message):
    path = write(tmp_path, {"resize": "other"}, {}, tensors)  # rule 3 is broken too, but later
    assert message in error(path)


def test_names_are_those_of_tensors(tmp_path):
    assert "no tensor `image`" in error(write(tmp_path, said={"tensor_names": '["image"]'}))


@pytest.mark.parametrize(
    ("resize", "extra", "tiling", "fits"),
    [
        ("letterbox", {}, None, True),
        ("stretch", {"letterbox": None}, None, True),
        ("tiled", {}, None, False),
        ("tiled", {"tiling": {"version": 1}}, None, True),
        ("crop", {}, None, False),
        ("tiled", {"grid": GRID}, TILED, True),
        ("tiled", {}, TILED, False),
        ("tiled", {"grid": GRID | {"algorithm": "fixed"}}, TILED, False),
        ("letterbox", {}, TILED, False),
        ("letterbox", {}, Tiling("whole_frame"), True),
        ("stretch", {"letterbox": None}, Tiling("whole_frame"), False),
        ("tiled", {"grid": GRID}, Tiling("whole_frame"), False),
    ],
)
def test_rule_3_geometry_that_fits_the_tiling(tmp_path, resize, extra, tiling, fits):
    path = write(tmp_path, {"resize": resize, **extra}, {} if fits else {"param_hash": "0" * 16})
    if fits:
        assert read_snapshot(path, SIZE, tiling).count == 9
    else:
        assert "resize" in error(path, tiling) or "evendist" in error(path, tiling)


@pytest.mark.parametrize("wanted", [False, True])
@pytest.mark.parametrize("held", [None, False, True, 1])
def test_rule_4_full_frames_where_the_model_is_given_some(tmp_path, wanted, held):
    path = write(tmp_path, {"resize": "tiled", "grid": GRID, "full_frame": held})
    tiling = Tiling("tiled", full_frame=wanted)
    if held == 1 and held is not True:
        assert "`full_frame` must be true or false" in error(path, tiling)
    elif bool(held) == wanted:
        assert read_snapshot(path, SIZE, tiling).count == 9
    else:
        assert "the model's is" in error(path, tiling)


@pytest.mark.parametrize("key", NEEDED)
def test_a_missing_key_is_an_error_that_names_it(tmp_path, key):
    path = write(tmp_path, said={key: None}, name="s.safetensors")
    assert f"`{key}` is missing" in error(path)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"param_hash": "0" * 16}, "`param_hash` is not that of `params`"),
        ({"param_hash": "xyz"}, "`xyz` is not a hash"),
        ({"dtype": "int8"}, "`dtype` must be uint8"),
        ({"layout": "NHWC"}, "`layout` must be NCHW"),
        ({"value_range": "[0, 1]"}, "`value_range` must be [0, 255]"),
        ({"count_requested": "8"}, "`count_requested` is 8, in `params` 9"),
        ({"count_actual": "8"}, "9 samples for `images`, `count_actual` says 8"),
        ({"selection": "random"}, "`selection` is random, in `params` max_dynamic_range_v1"),
        ({"seed": "43"}, "`seed` is 43, in `params` 42"),
        ({"normalization": '{"scale": 1}'}, "`normalization` is"),
        ({"content_sha256": "0" * 64}, "not those of `content_sha256`"),
    ],
)
def test_what_a_file_says_of_itself_must_be_so(tmp_path, said, message):
    assert message in error(write(tmp_path, said=said, name="s.safetensors"))


OTHER: dict[str, Any] = {
    "count": 10,
    "seed": 43,
    "input_shape": [32, 24],
    "channels": 1,
    "layout": "NHWC",
    "dtype": "int8",
    "resize": "tiled",
    "letterbox": {"pad_color": [0, 0, 0]},
    "normalization": {"scale": 1.0, "mean": [0.0] * 3, "std": [1.0] * 3},
}


@pytest.mark.parametrize("key", PARAMS)
def test_every_parameter_is_read_or_carried_for_a_reason(tmp_path, key):
    """Changed together with their hash they are refused, read differently, or carried."""
    path = write(tmp_path, {key: OTHER.get(key, "other")}, name="s.safetensors")
    if f"params.{key}" in CARRIED:
        assert read_snapshot(path, SIZE).params[key] == OTHER.get(key, "other")
    elif key == "normalization":
        found = read_snapshot(path, SIZE).normalization
        assert found != read_snapshot(write(tmp_path), SIZE).normalization
    elif key == "letterbox":
        assert "`letterbox` is there for every" in error(write(tmp_path, {key: None}))
    else:
        assert error(path)


@pytest.mark.parametrize("key", PARAMS)
def test_a_parameter_that_changes_alone_breaks_the_hash(tmp_path, key):
    kept = {"input_shape": [*SIZE], "resize": "stretch"}.get(key, "other")
    params = PARAMS | {key: kept if key != "input_shape" else [16.0, 24]}
    path = write(tmp_path, said={"params": json.dumps(params)}, name="s.safetensors")
    assert "`param_hash` is not" in error(path) or key == "input_shape"


def test_the_name_of_the_file_speaks_of_the_same_parameters(tmp_path):
    path = write(tmp_path, name=f"calibration-local-{'0' * 16}.safetensors")
    assert "the file's name has the hash of other parameters" in error(path)


@pytest.mark.parametrize("digits", [8, 16])
@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
def test_either_length_and_spelling_of_the_hash_is_read(tmp_path, digits, separators):
    text = json.dumps(PARAMS, sort_keys=True, separators=separators)
    found = hashlib.sha256(text.encode()).hexdigest()[:digits]
    assert read_snapshot(write(tmp_path, said={"param_hash": found}), SIZE).count == 9


def test_samples_of_another_type_are_refused(tmp_path):
    path = write(tmp_path, tensors={"images": pictures().astype(np.float32)})
    assert "`images` is F32, not uint8" in error(path)


def test_a_large_file_is_remarked_and_no_error(tmp_path, monkeypatch):
    path = write(tmp_path)
    monkeypatch.setattr(snapshot, "WARNING_BYTES", path.stat().st_size - 1)
    assert len(read_snapshot(path, SIZE).remarks) == 1
    monkeypatch.setattr(snapshot, "WARNING_BYTES", path.stat().st_size)
    assert read_snapshot(path, SIZE).remarks == ()


@pytest.mark.parametrize("cut", [0, 7, 8, 100, -1])
def test_a_damaged_file_is_one_error(tmp_path, cut):
    whole = write(tmp_path).read_bytes()
    path = tmp_path / "s.safetensors"
    path.write_bytes(whole[:cut])
    assert "not a .safetensors file" in error(path)


def test_samples_are_read_one_at_a_time(tmp_path):
    path = write(tmp_path, tensors={"images": pictures(count=2000)})  # 2.3 MB
    tracemalloc.start()
    found = read_snapshot(path, SIZE)
    for index in range(found.count):
        found.sample("images", index)
    assert tracemalloc.get_traced_memory()[1] < 200_000
    tracemalloc.stop()
