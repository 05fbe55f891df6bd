"""OpenVINO's .zip runs as any other artifact: the numbers of onnxruntime, one error else."""

from __future__ import annotations

import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from npumake.cli.main import main
from npumake.engine.ort import OrtSession
from npumake.errors import GraphError
from npumake.graph import Graph, parse_text
from npumake.runtime import Session

openvino = pytest.importorskip("openvino", reason="OpenVINO is not installed")
TEXT = """agraph (float[1,3,6,6] x, float[1,4] s) => (float[1,2,6,6] y, float[1,4] z)
    <float[2,3,1,1] w = {1, -2, 3, 0.5, 0.25, -1}> { y = Conv(x, w) z = Sigmoid(s) }"""


@pytest.fixture
def graph() -> Graph:
    return parse_text(TEXT)


@pytest.fixture
def packed(tmp_path: Path, graph: Graph) -> Path:
    model = openvino.Core().read_model(graph.to_bytes(), b"")
    openvino.serialize(model, tmp_path / "model.xml", tmp_path / "model.bin")
    file = tmp_path / "m.zip"
    with zipfile.ZipFile(file, "w") as archive:
        for name in ("model.xml", "model.bin"):
            archive.write(tmp_path / name, name)
    return file


def feeds(seed: int = 0) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    shapes = {"x": (1, 3, 6, 6), "s": (1, 4)}
    return {name: random.standard_normal(shape, np.float32) for name, shape in shapes.items()}


def test_it_answers_as_onnxruntime(packed: Path, graph: Graph) -> None:
    session, other = Session(packed), OrtSession(graph.to_bytes())
    assert set(session.input_names) == {"x", "s"}
    names = ["z", "y"]
    for found, expected in zip(session.run(names, feeds()), other.run(names, feeds()), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_frames_run_at_a_time(packed: Path) -> None:
    session = Session(packed)
    alone = [session.run(["y"], feeds(seed))[0] for seed in range(8)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda seed: session.run(["y"], feeds(seed))[0], range(8)))
    np.testing.assert_array_equal(alone, together)


@pytest.mark.parametrize(
    ("fed", "what"),
    [
        ({}, "the model reads `"),
        ({"x": np.zeros((1, 3, 5, 6), np.float32)}, r"`x` is fed float32\[1, 3, 5, 6\]"),
        ({"x": np.zeros((1, 3, 6, 6))}, "`x` is fed float64"),
    ],
)
def test_feeds_that_do_not_fit_are_refused(
    packed: Path, fed: dict[str, np.ndarray], what: str
) -> None:
    session = Session(packed)
    with pytest.raises(GraphError, match=what):
        session.run(None, {**(feeds() if fed else {}), **fed})


@pytest.mark.parametrize("damage", ["cut", "other", "xml"])
def test_a_damaged_file_is_one_error(packed: Path, tmp_path: Path, damage: str) -> None:
    data = packed.read_bytes()
    if damage == "cut":
        packed.write_bytes(data[: len(data) // 2])
    else:
        member = {"other": "note.txt", "xml": "model.xml"}[damage]
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr(member, "<net/>")
            if damage == "xml":
                archive.writestr("model.bin", b"")
    with pytest.raises(GraphError, match="OpenVINO"):
        Session(packed)


def test_run_and_bench_take_it(
    packed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = []
    for name, values in feeds().items():
        np.save(tmp_path / f"{name}.npy", values)
        words += ["-i", f"{name}={tmp_path / name}.npy"]
    assert main(["run", str(packed), *words]) == 0
    assert "y: float32[1, 2, 6, 6]" in capsys.readouterr().out
    assert main(["bench", str(packed), "--frame_count", "4", "--thread_num", "2"]) == 0
    assert "Frame count is: 4" in capsys.readouterr().out
