"""npumake compare: a board's dump against ours, as a person and as a machine reads it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from npumake.data.samples import Samples
from npumake.engine.lower import lowered
from npumake.engine.reference import ReferenceSession
from npumake.graph import Graph
from npumake.targets.reader import read_target
from workspaces import Workspace

TARGET = "digits:rdk-x5"


def board(built: Workspace, sample: int = 0) -> dict[str, np.ndarray]:
    """Every tensor of codes that a board which computes as ours would write."""
    out, target = built.project / "out", read_target("rdk-x5")
    quantized = Graph.load(out / "quantized.rdk-x5.onnx")
    program = lowered(quantized, target.rounding, target.runnable)
    inner = [name for step in program.instructions for name in step.outputs]
    made = ReferenceSession(program).run(inner, Samples.load(out / "samples.npz").read(sample))
    return {n: x for n, x in zip(inner, made, strict=True) if program.tensors[n].scale}


def dumped(folder: Path, arrays: dict[str, np.ndarray]) -> Path:
    folder.mkdir(exist_ok=True)
    for name, values in arrays.items():
        np.save(folder / f"{name}.npy", values)
    return folder


@pytest.mark.slow
def test_a_right_dump_agrees(built: Workspace) -> None:
    folder = dumped(built.root / "dump", board(built))
    run = built.npumake("compare", TARGET, "--dump", str(folder))
    assert f"{len(list(folder.iterdir()))} tensors agree" in run.stdout
    assert "fed: sample 0, 0000.npy" in run.stdout


def test_the_first_that_diverges_is_named_with_its_cause(built: Workspace) -> None:
    arrays = board(built)
    name = "block1_pointwise_quantized"
    arrays[name] = np.clip(arrays[name].astype(int) * 2, -128, 127).astype(np.int8)
    folder = dumped(built.root / "dump", arrays)
    run = built.npumake("compare", TARGET, "--dump", str(folder), check=False)
    assert run.returncode == 6
    assert "first divergence: block1_pointwise (block1_pointwise_bn in the trained model)" in (
        run.stdout
    )
    assert "likely cause: scale: every value is 2 times ours" in run.stdout
    assert "it was computed rightly and dumped wrongly" in run.stdout
    assert [line.split()[1] for line in run.stdout.splitlines() if line.startswith(" > ")] == [
        "block1_pointwise"
    ]
    assert "error: the dump diverges from ours at `block1_pointwise`" in run.stderr


def test_json_has_the_same(built: Workspace) -> None:
    arrays = board(built)
    arrays["stem_relu6_quantized"] = np.full_like(arrays["stem_relu6_quantized"], 0)
    folder = dumped(built.root / "dump", arrays)
    run = built.npumake("compare", TARGET, "--dump", str(folder), "--json", check=False)
    found = json.loads(run.stdout)
    assert run.returncode == 6
    assert found["first"]["node"] == "stem_conv"
    assert found["causes"][0]["kind"] == "uninitialized"
    assert [row["tensor"] for row in found["rows"]] == list(arrays)


@pytest.mark.parametrize("way", [["--sample", "3"], ["--sample", "0003.npy"], ["--input", "x.npy"]])
def test_what_the_board_was_fed_is_said(built: Workspace, way: list[str]) -> None:
    folder = dumped(built.root / "dump", board(built, 3))
    fed = Samples.load(built.project / "out" / "samples.npz").read(3)["image"]
    np.save(built.root / "x.npy", fed)
    run = built.npumake("compare", TARGET, "--dump", str(folder), *way)
    assert "tensors agree" in run.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("--dump", "none"), "error: no such folder\n  --> none"),
        (("--dump", "empty"), "error: no file name matches a tensor\n  --> empty"),
        (("--dump", "dump", "--sample", "99"), "error: no sample `99`, there are 64"),
        (("--dump", "dump", "--input", "none.npy"), "error: cannot be read: No such file"),
        (("--dump", "dump", "--input", "y.npy"), "error: int8[2, 2] where `image` takes float32"),
        (("--dump", "dump", "--input", "a=y.npy"), "error: no input `a`"),
    ],
)
def test_what_cannot_be_compared(built: Workspace, words: tuple[str, ...], error: str) -> None:
    dumped(built.root / "dump", board(built))
    (built.root / "empty").mkdir()
    np.save(built.root / "y.npy", np.zeros((2, 2), np.int8))
    run = built.npumake("compare", TARGET, *words, check=False)
    assert run.returncode == 2
    assert error in run.stderr
    assert "Traceback" not in run.stderr


def test_help_has_an_example(built: Workspace) -> None:
    assert "npumake compare digits:rdk-x5 --dump dump/" in (
        built.npumake("compare", "--help").stdout
    )
