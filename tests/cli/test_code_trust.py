"""`--allow-code` and `--operators`: whose Python a verb runs, and that nothing runs unasked."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from custom.files import MODEL, OURS
from npumake.bundle.archive import Bundle
from npumake.cli.main import main
from npumake.custom.operators import operators_in
from npumake.custom.shapes import with_shapes
from npumake.debug.verify import program_of
from npumake.graph import Graph, parse_text
from npumake.targets.reader import read_target

Output = pytest.CaptureFixture[str]
COMMANDS = [
    ["run", "m.hybrid", "--input", "x.npy"],
    ["bench", "m.hybrid", "--frame_count", "1", "--profiling"],
    ["verify", "-q", "m.onnx", "-b", "m.hybrid"],
]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model with an operator of its own, which leaves a file behind where it is run."""
    monkeypatch.chdir(tmp_path)
    code = OURS + "\nopen('ran', 'w').close()\n"
    graph = with_shapes(parse_text(MODEL), operators_in({"shrink.py": OURS.encode()}))
    graph.save(tmp_path / "m.onnx")
    program = program_of(Graph.load(tmp_path / "m.onnx"), read_target("rdk-x5"))
    Bundle("rdk-x5", program, {}, code={"shrink.py": code.encode()}).save(tmp_path / "m.hybrid")
    (tmp_path / "mine.py").write_text(OURS)
    np.save("x.npy", np.ones((1, 1, 8, 8), np.float32))
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_what_a_bundle_brings_runs_only_when_it_is_allowed(
    command: list[str], folder: Path, capsys: Output
) -> None:
    assert main(command) == 3
    said = capsys.readouterr().err
    assert "the bundle contains Python to run: shrink.py" in said
    assert "--allow-code" in said
    assert not (folder / "ran").exists()
    assert main([*command, "--allow-code"]) == 0
    assert (folder / "ran").exists()


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_operators_of_ones_own_take_the_place_of_those_it_brings(
    command: list[str], folder: Path
) -> None:
    assert main([*command, "--operators", "mine.py"]) == 0
    assert not (folder / "ran").exists()


def test_a_float_model_runs_with_operators_of_ones_own(capsys: Output) -> None:
    assert main(["run", "m.onnx", "--input", "x.npy", "--allow-code"]) == 3
    assert "without an implementation: vendor.ops.Shrink2" in capsys.readouterr().err
    assert main(["run", "m.onnx", "--input", "x.npy", "--operators", "mine.py"]) == 0
    assert main(["run", "m.onnx", "--input", "x.npy", "--operators", "none.py"]) == 3
    assert "no such file" in capsys.readouterr().err
