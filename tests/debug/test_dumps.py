"""Dumps are read in every layout that boards write, and the first tensor that diverges is named."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from compilers.files import made_of
from npumake.bundle.program import Program
from npumake.data.samples import Samples
from npumake.debug.dumps.compare import DumpComparison, compare_dump, read_dump
from npumake.debug.dumps.inputs import DumpFeeds, feeding_of
from npumake.debug.dumps.matching import names_of
from npumake.debug.dumps.naming import label
from npumake.engine.reference import ReferenceSession
from npumake.errors import ProjectError
from npumake.graph import parse_text

NETWORK = """agraph (float[1,3,8,10] image) => (float[1,4] scores)
 <float[6,3,3,3] w = {%s}, float[6,6,1,1] v = {%s}, float[6,4] m = {%s}, int64[2] flat = {1, 6}> {
  stem = Conv <pads = [1,1,1,1]> (image, w)
  relu = Relu(stem)
  point = Conv(relu, v)
  both = Add(point, relu)
  pool = GlobalAveragePool(both)
  vector = Reshape(pool, flat)
  scores = MatMul(vector, m) }"""
TRAINED = {node: [node] for node in ("stem", "relu", "point", "both", "pool", "vector", "scores")}
IMAGES = ("relu_quantized", "point_quantized", "both_quantized")
TENSORS = (*IMAGES, "pool_quantized", "scores_quantized")
COUNT = 6  # samples


def numbers(count: int, seed: int) -> str:
    return ", ".join(f"{x:.4f}" for x in np.random.default_rng(seed).normal(0, 0.4, count))


@pytest.fixture(scope="module")
def samples() -> Samples:
    fed = np.random.default_rng(3).normal(0, 1, (COUNT, 1, 3, 8, 10)).astype(np.float32)
    names = tuple(f"{index:04}.npy" for index in range(COUNT))
    return Samples(names, lambda index: {"image": fed[index]})


@pytest.fixture(scope="module")
def program(samples) -> Program:
    graph = parse_text(NETWORK % (numbers(162, 0), numbers(36, 1), numbers(24, 2)))
    return made_of(graph, samples.read(0)).program


@pytest.fixture
def board(program, samples) -> dict[str, np.ndarray]:
    """Every tensor that a board which computes as ours makes of the first sample."""
    return board_of(program, samples, 0)


def board_of(program: Program, samples: Samples, index: int) -> dict[str, np.ndarray]:
    inner = [name for step in program.instructions for name in step.outputs]
    fed = samples.read(index)
    return dict(zip(inner, ReferenceSession(program).run(inner, fed), strict=True)) | dict(fed)


def behind(program: Program, values: dict[str, np.ndarray], name: str, wrong: np.ndarray):
    """What the board makes when one of its tensors is wrong."""
    found, session, changed = {**values, name: wrong}, ReferenceSession(program), {name}
    for step in program.instructions:
        if changed & set(step.inputs):
            made = session.execute(step, [found[n] for n in step.inputs])
            found |= dict(zip(step.outputs, made, strict=True))
            changed |= set(step.outputs)
    return found


def saved(folder: Path, arrays: dict[str, np.ndarray]) -> Path:
    for name, values in arrays.items():
        np.save(folder / f"{name}.npy", values)
    return folder


def held(
    folder: Path, program: Program, samples: Samples, sample: str | None = None
) -> DumpComparison:
    feeding = feeding_of(samples, sample)
    return compare_dump(program, read_dump(folder, names_of(program, TRAINED)), feeding)


def last(values: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(values.transpose(0, 2, 3, 1)) if values.ndim == 4 else values


def statuses(found: DumpComparison) -> dict[str, str]:
    return {row.tensor: row.status for row in found.rows}


def all_equal(found: DumpComparison, names=TENSORS) -> bool:
    return found.first is None and statuses(found) == dict.fromkeys(names, "equal")


# -- layouts


def as_npy(folder, board, grids):
    saved(folder, {name: last(board[name]) for name in TENSORS})


def as_ours(folder, board, grids):
    saved(folder, {name: board[name] for name in TENSORS})


def as_npz(folder, board, grids):
    np.savez(folder / "all.npz", **{name: last(board[name]) for name in TENSORS})


def as_bare(folder, board, grids):
    for name in TENSORS:
        last(board[name]).tofile(folder / f"{name}.bin")


def as_named(folder, board, grids):
    for name in TENSORS:
        dims = "x".join(map(str, last(board[name]).shape))
        last(board[name]).tofile(folder / f"{name}_{dims}_int8.raw")


def as_unsigned(folder, board, grids):
    for name in TENSORS:
        (last(board[name]).view(np.uint8) ^ 128).tofile(folder / f"{name}.bin")


def as_real(folder, board, grids):
    for name in TENSORS:
        real = (board[name].astype(np.float32) - grids[name].zero_point) * grids[name].scale
        last(real).astype(np.float32).tofile(folder / f"{name}.bin")


def as_half(folder, board, grids):
    real = {
        n: (board[n].astype(np.float64) - grids[n].zero_point) * grids[n].scale for n in TENSORS
    }
    saved(folder, {name: last(x).astype(np.float16) for name, x in real.items()})


def as_floats(folder, board, grids):
    saved(folder, {name: last(board[name]).astype(np.float32) for name in TENSORS})


def as_wide(folder, board, grids):
    saved(folder, {name: last(board[name]).astype(np.int32) for name in TENSORS})


def as_text(folder, board, grids):
    for name in TENSORS:
        np.savetxt(folder / f"{name}.txt", last(board[name]).ravel(), fmt="%d")


def as_padded(folder, board, grids):
    """Rows of a multiple of 16, and columns of a multiple of 4."""
    for name in TENSORS:
        values = last(board[name])
        ends = [(0, 0)] * (values.ndim - 1) + [(0, -values.shape[-1] % 16)]
        if values.ndim == 4:
            ends[2] = (0, -values.shape[2] % 4)
        np.pad(values, ends).tofile(folder / f"{name}.bin")


def as_flat(folder, board, grids):
    saved(folder, {name: last(board[name]).ravel() for name in TENSORS})


def as_layers(folder, board, grids):
    """hrt_model_exec --dump_intermediate, and the outputs by --enable_dump."""
    for index, name in enumerate(TENSORS[:-1]):
        place = f"layer-{index}-bpu-subgraph_0-output-0-{name}"
        last(board[name]).tofile(folder / f"{place}.data.bin")
        last(board[name]).tofile(folder / f"layer-9-Conv-next{index}-input-0-{name}.bin")
    board["scores_quantized"].tofile(folder / "model_infer_output_0_scores.bin")


def as_acuity(folder, board, grids):
    for name in TENSORS:
        dims = "_".join(map(str, last(board[name]).shape))
        place = folder / f"iter_0_attach_{name}_out0_0_out0_{dims}.tensor"
        np.savetxt(place, last(board[name]).ravel(), fmt="%d")


def as_described(folder, board, grids):
    rows = ["name,file,shape,dtype,layout,scale,zero_point"]
    for index, name in enumerate(TENSORS):
        values, grid = last(board[name]), grids[name]
        dims = "x".join(map(str, values.shape))
        layout = "NHWC" if values.ndim == 4 else ""
        values.tofile(folder / f"{index}.dat")
        rows.append(f"{name},{index},{dims},int8,{layout},{grid.scale},{grid.zero_point}")
    (folder / "manifest.csv").write_text("\n".join(rows))


def as_other_grid(folder, board, grids):
    """The manifest has a grid of its own, and the codes are on it."""
    tensors = {}
    for name in TENSORS:
        grid = grids[name]
        real = (board[name].astype(np.float64) - grid.zero_point) * grid.scale
        scale = float(np.abs(real).max()) / 32000
        np.save(folder / f"{name}.npy", last(np.rint(real / scale)).astype(np.int16))
        tensors[name] = {"scale": scale, "zero_point": 0}
    (folder / "manifest.json").write_text(json.dumps({"tensors": tensors}))


LAYOUTS = {name[3:]: way for name, way in sorted(globals().items()) if name.startswith("as_")}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_right_dump_agrees_in_every_layout(tmp_path, program, samples, board, layout):
    LAYOUTS[layout](tmp_path, board, program.tensors)
    found = held(tmp_path, program, samples)
    assert found.first is None
    assert len(found.rows) == len(TENSORS)
    assert max(row.difference.worst for row in found.rows) <= 1.0


EXACT = [name for name in LAYOUTS if name not in ("half", "other_grid")]


@pytest.mark.slow(cases=36)
@pytest.mark.parametrize("name", TENSORS)
@pytest.mark.parametrize("layout", EXACT)
def test_a_wrong_tensor_is_named_in_every_layout(tmp_path, program, samples, board, layout, name):
    wrong = np.clip(board[name].astype(int) - 21, -128, 127).astype(np.int8)
    LAYOUTS[layout](tmp_path, behind(program, board, name, wrong), program.tensors)
    found = held(tmp_path, program, samples)
    assert found.first is not None
    assert found.first.tensor == name
    assert found.causes[0].kind == "zero_point"


@pytest.mark.parametrize("count", range(1, len(TENSORS) + 1))
def test_of_any_subset_the_first_that_diverges_is_named(tmp_path, program, samples, board, count):
    wrong = np.clip(board["relu_quantized"].astype(int) * 2 + 128, -128, 127).astype(np.int8)
    values = behind(program, board, "relu_quantized", wrong)
    kept = np.random.default_rng(count).permutation(len(TENSORS))[:count]
    names = [TENSORS[index] for index in sorted(kept)]
    found = held(saved(tmp_path, {name: values[name] for name in names}), program, samples)
    assert found.first is not None
    assert found.first.tensor == names[0]
    assert ("stem" in found.first.between) == (names[0] != "relu_quantized")


def test_what_only_follows_from_a_wrong_tensor_is_not_blamed(tmp_path, program, samples, board):
    wrong = np.ascontiguousarray(board["point_quantized"][:, ::-1])
    values = behind(program, board, "point_quantized", wrong)
    found = held(saved(tmp_path, {name: values[name] for name in TENSORS}), program, samples)
    assert list(statuses(found).values()) == ["equal", "differs", "follows", "follows", "follows"]
    assert not found.is_isolated


def test_a_tensor_that_was_only_written_wrongly(tmp_path, program, samples, board):
    values = {name: board[name] for name in TENSORS}
    values["point_quantized"] = np.ascontiguousarray(board["point_quantized"][:, ::-1])
    found = held(saved(tmp_path, values), program, samples)
    assert list(statuses(found).values()) == ["equal", "differs", "equal", "equal", "equal"]
    assert found.is_isolated


@pytest.mark.parametrize("name", IMAGES)
def test_one_image_in_another_order_than_the_rest_diverges(tmp_path, program, samples, board, name):
    values = {n: board[n] if n == name else last(board[n]) for n in TENSORS}
    found = held(saved(tmp_path, values), program, samples)
    assert found.first is not None
    assert (found.first.tensor, found.causes[0].kind) == (name, "layout")


@pytest.mark.parametrize("seed", range(4))
def test_a_code_more_or_less_here_and_there_is_rounding(tmp_path, program, samples, board, seed):
    rng, values = np.random.default_rng(seed), dict(board)
    for name in TENSORS:
        values = behind(program, values, name, _jittered(values[name], rng))
    found = held(saved(tmp_path, {name: values[name] for name in TENSORS}), program, samples)
    assert found.first is None
    assert "within" in statuses(found).values()


def _jittered(codes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    moved = codes.astype(int) + rng.choice([-1, 0, 1], codes.shape, p=[0.05, 0.9, 0.05])
    return np.clip(moved, -128, 127).astype(np.int8)


# -- names


@pytest.mark.parametrize("name", ["relu", "stem", "Relu", "relu_quantized", "relu:0", "03_relu"])
def test_a_tensor_is_known_by_each_of_its_names(tmp_path, program, samples, board, name):
    found = held(saved(tmp_path, {name: board["relu_quantized"]}), program, samples)
    assert statuses(found) == {"relu_quantized": "equal"}


def test_a_folder_around_all_files_is_no_part_of_their_names(tmp_path, program, samples, board):
    inner = tmp_path / "frame" / "0"
    inner.mkdir(parents=True)
    as_npy(inner, board, program.tensors)
    assert all_equal(held(tmp_path, program, samples))


@pytest.mark.parametrize("name", ["output_0", "out0", "model_infer_output_0", "outputs_0"])
def test_an_output_is_known_by_its_number(tmp_path, program, samples, board, name):
    found = held(saved(tmp_path, {name: board["scores"]}), program, samples)
    assert statuses(found) == {"scores": "equal"}


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("CONV2D_uid_12_t_0_s_10_8_6_1", (1, 6, 8, 10)),
        ("prefix_NBG_uid_4_t_2_s_13_13_255_1", (1, 255, 13, 13)),
        ("iter_0_attach_relu_out0_0_out0_1_6_8_10", (1, 6, 8, 10)),
        ("relu_1x6x8x10_f32", (1, 6, 8, 10)),
        ("relu-int8-1x6x8x10", (1, 6, 8, 10)),
    ],
)
def test_a_name_tells_a_shape(name, shape):
    assert label(name).shape == shape


def test_a_name_of_several_tensors_is_an_error(tmp_path, program, samples, board):
    grid = program.tensors["relu_quantized"]
    twins = Program((), (), {"a/b": grid, "a:b": grid}, ())
    saved(tmp_path, {"a_b": board["relu_quantized"]})
    with pytest.raises(ProjectError, match="may be `a/b` or `a:b`"):
        read_dump(tmp_path, names_of(twins))


def test_two_files_of_one_tensor_are_an_error(tmp_path, program, samples, board):
    saved(tmp_path, {"relu": board["relu_quantized"]})
    board["relu_quantized"].tofile(tmp_path / "relu_quantized.bin")
    with pytest.raises(ProjectError, match="two files for `relu_quantized`"):
        held(tmp_path, program, samples)


def test_where_nothing_matches_the_nearest_name_is_told(tmp_path, program, samples, board):
    saved(tmp_path, {"zzz": board["pool_quantized"], "both_quantised_": board["both_quantized"]})
    with pytest.raises(ProjectError, match="is `both_quantised_` meant to be `both_quantized`"):
        held(tmp_path, program, samples)


# -- what was fed


@pytest.mark.parametrize("index", range(1, COUNT))
def test_the_sample_that_the_dump_holds_is_fed(tmp_path, program, samples, index):
    values = board_of(program, samples, index)
    kept = {name: values[name] for name in ("image", *TENSORS)}
    found = held(saved(tmp_path, kept), program, samples)
    assert found.first is None
    assert found.input == f"sample {index}, {index:04}.npy"


@pytest.mark.parametrize("form", ["real", "codes"])
def test_an_input_that_is_no_sample_is_fed_all_the_same(tmp_path, program, samples, form):
    other = np.random.default_rng(9).normal(0, 1, (1, 3, 8, 10)).astype(np.float32)
    values = board_of(program, Samples(("x",), lambda _: {"image": other}), 0)
    kept = {name: last(values[name]) for name in TENSORS}
    kept["image"] = last(values["image_quantized"]) if form == "codes" else other
    found = held(saved(tmp_path, kept), program, samples)
    assert found.first is None
    assert "not a sample of the project" in found.input


def test_another_sample_is_told_without_its_input(tmp_path, program, samples):
    values = board_of(program, samples, 4)
    found = held(saved(tmp_path, {name: values[name] for name in TENSORS}), program, samples)
    assert found.first is not None
    assert found.causes[0].kind == "other_input"
    assert "sample 4" in found.causes[0].sentence
    assert held(tmp_path, program, samples, "4").first is None


def test_an_input_that_is_not_what_the_user_says(tmp_path, program, samples):
    values = board_of(program, samples, 4)
    saved(tmp_path, {name: values[name] for name in ("image", *TENSORS)})
    found = held(tmp_path, program, samples, "0002.npy")
    assert found.first is not None
    assert (found.first.tensor, found.causes[0].kind) == ("image", "other_input")


@pytest.mark.parametrize(
    ("kind", "way"),
    [
        ("channel_order", lambda x: x[:, ::-1]),
        ("layout", lambda x: x.transpose(0, 2, 3, 1).reshape(x.shape)),
        ("scale", lambda x: x * 2.0),
        ("zero_point", lambda x: x + 0.5),
    ],
)
def test_how_the_input_was_fed_is_told(tmp_path, program, samples, kind, way):
    turned = Samples(
        ("x",), lambda _: {"image": np.ascontiguousarray(way(samples.read(0)["image"]))}
    )
    values = board_of(program, turned, 0)
    saved(tmp_path, {name: values[name] for name in ("image", *TENSORS)})
    found = held(tmp_path, program, samples)
    assert found.first is not None
    assert (found.first.tensor, found.causes[0].kind) == ("image", kind)


def test_an_unknown_sample_is_an_error(samples):
    with pytest.raises(ProjectError, match="no sample `7`, there are 6"):
        feeding_of(samples, "7")
    assert isinstance(feeding_of(samples, "3"), DumpFeeds)


# -- files that are not to be trusted


def npy_header(text: str) -> bytes:
    header = text.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header


DAMAGED = {
    "pickle.npy": npy_header("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}") + b"\x80",
    "huge.npy": npy_header("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000,)}"),
    "cut.npy": npy_header("{'descr': '|i1', 'fortran_order': False, 'shape': (1, 6, 8, 10)}")
    + b"1",
    "empty.npy": b"",
    "text.npy": b"hello",
    "words.txt": b"one two three",
    "short.bin": b"123",
    "zip.npz": b"PK\x03\x04 no archive",
    "manifest.json": b"{",
    "tensors.json": b'{"relu": ["int8"]}',
    "dump.json": b'[{"name": "relu", "scale": [0.1, 0.2]}]',
    "manifest.csv": b"name,dtype\nrelu,int7\n",
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_file_is_one_error_that_names_it(tmp_path, program, samples, board, damage):
    suffix = Path(damage).suffix
    is_named = suffix in (".json", ".csv", ".npz")
    file = tmp_path / (damage if is_named else f"relu{suffix}")
    file.write_bytes(DAMAGED[damage])
    saved(tmp_path, {"point": board["point_quantized"]})
    with pytest.raises(ProjectError) as raised:
        held(tmp_path, program, samples)
    assert file.name in str(raised.value)


def test_a_link_that_leads_out_is_refused(tmp_path, program, samples, board):
    folder = tmp_path / "dump"
    folder.mkdir()
    np.save(tmp_path / "outside.npy", board["relu_quantized"])
    os.symlink(tmp_path / "outside.npy", folder / "relu.npy")
    with pytest.raises(ProjectError, match="a link that leads out of the dump"):
        held(folder, program, samples)


def test_a_manifest_that_is_a_link_out_is_refused(tmp_path, program, samples, board):
    folder = saved(tmp_path, {"relu": board["relu_quantized"]}) / "dump"
    folder.mkdir()
    (tmp_path / "manifest.json").write_text("{}")
    os.symlink(tmp_path / "manifest.json", folder / "manifest.json")
    saved(folder, {"relu": board["relu_quantized"]})
    with pytest.raises(ProjectError, match="a link that leads out of the dump"):
        held(folder, program, samples)


def test_a_folder_that_links_out_is_not_entered(tmp_path, program, samples, board):
    folder, outside = tmp_path / "dump", tmp_path / "outside"
    folder.mkdir()
    outside.mkdir()
    saved(outside, {"relu": np.zeros((1, 6, 8, 10), np.int8)})
    saved(folder, {"point": board["point_quantized"]})
    os.symlink(outside, folder / "more")
    assert statuses(held(folder, program, samples)) == {"point_quantized": "equal"}


def test_a_missing_folder_is_an_error(tmp_path, program, samples):
    with pytest.raises(ProjectError, match="no such folder"):
        held(tmp_path / "none", program, samples)


def test_an_empty_folder_is_an_error(tmp_path, program, samples):
    with pytest.raises(ProjectError, match="no file name matches a tensor"):
        held(tmp_path, program, samples)
