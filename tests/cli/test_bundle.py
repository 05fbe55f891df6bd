"""`npumake bundle`: a ZIP that builds elsewhere, with nothing that the project does not name."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from npumake.cli.main import main
from workspaces import Workspace, lay_out

Output = pytest.CaptureFixture[str]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    workspace = lay_out(tmp_path / "w")
    monkeypatch.chdir(workspace.root)
    monkeypatch.delenv("CI", raising=False)
    return workspace


def unpacked(file: Path, folder: Path) -> Path:
    with zipfile.ZipFile(file) as archive:
        for name in archive.namelist():
            assert not name.startswith("/")
            assert ".." not in name.split("/")
        archive.extractall(folder)
    return folder


def names(file: Path) -> list[str]:
    with zipfile.ZipFile(file) as archive:
        return archive.namelist()


def edit(workspace: Workspace, old: str, new: str) -> None:
    file = workspace.project / "project.yaml"
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))


def weights(file: Path) -> dict[str, np.ndarray]:
    proto = onnx.load(file)
    return {each.name: numpy_helper.to_array(each) for each in proto.graph.initializer}


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--random-weights",)], ids=["trained", "random"])
def test_the_unpacked_bundle_builds_by_its_own_commands(here, capsys, tmp_path, options) -> None:
    assert main(["bundle", "digits", "-o", f"{tmp_path}/t.zip", *options]) == 0
    assert "its own build ends with 0" in capsys.readouterr().out
    folder = unpacked(tmp_path / "t.zip", tmp_path / "elsewhere")
    assert len(list(folder.glob("digits/samples/*.npy"))) == 16
    commands = folder.joinpath("commands.sh").read_text()
    python = f"{sys.executable} -m npumake"
    ran = subprocess.run(
        ["sh", "-euc", commands.replace("npumake build", f"{python} build"), str(folder / "c.sh")],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NPUMAKE_CACHE": str(tmp_path / "cache")},
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    log = folder.joinpath("log.txt").read_text()
    assert (
        re.sub(r"[\d.]+ s\b", "", log).split("\n")[1:4]
        == re.sub(r"[\d.]+ s\b", "", ran.stdout).split("\n")[:3]
    )
    assert log.endswith("exit code 0\n")


def test_it_holds_what_the_project_names_and_nothing_else(here: Workspace, tmp_path: Path) -> None:
    here.project.joinpath("secret.txt").write_text("no")
    here.root.joinpath("npumake.yaml").write_text("cache: {remote: 'http://localhost:1'}\n")
    assert main(["bundle", "digits", "--no-build", "--samples", "2"]) == 0
    assert names(Path("digits.zip")) == [
        "commands.sh",
        "digits/model.onnx",
        "digits/project.yaml",
        *(f"digits/samples/{name}.npy" for name in ("0000", "0032")),
        "versions.json",
    ]
    versions = json.loads(
        unpacked(Path("digits.zip"), tmp_path).joinpath("versions.json").read_text()
    )
    assert {"npumake", "onnx", "onnxruntime"} <= versions["packages"].keys()


def test_the_same_project_gives_the_same_bytes(here: Workspace) -> None:
    for name in ("a", "b"):
        main(["bundle", "digits", "--no-build", "--random-weights", "-o", f"{name}.zip"])
    assert Path("a.zip").read_bytes() == Path("b.zip").read_bytes()


def test_random_weights_are_others_of_the_same_distribution(here, tmp_path, capsys) -> None:
    model = here.project / "model.onnx"
    main(["bundle", "digits", "--no-build", "--random-weights", "--seed", "3"])
    packed = unpacked(Path("digits.zip"), tmp_path) / "digits/model.onnx"
    trained, random = weights(model), weights(packed)
    assert trained.keys() == random.keys()
    for name, values in trained.items():
        drawn = random[name]
        assert (drawn.shape, drawn.dtype) == (values.shape, values.dtype)
        assert (drawn.min(), drawn.max()) == (values.min(), values.max())
        assert np.count_nonzero(drawn) == np.count_nonzero(values)
        if values.dtype.kind == "f" and values.size > 2:
            assert not np.array_equal(drawn, values)
    assert "tensors hold random weights" in capsys.readouterr().out


LAYOUTS = ["relative", "absolute", "variable", "whole variable"]


@pytest.mark.slow
@pytest.mark.parametrize("how", LAYOUTS)
def test_files_from_elsewhere_are_packed_where_the_yaml_names_them(
    here, tmp_path, monkeypatch, how
) -> None:
    data = tmp_path / "lake"
    here.project.joinpath("samples").rename(data)
    data.joinpath("unnamed.txt").write_text("no")
    model = data / "net.onnx"
    here.project.joinpath("model.onnx").rename(model)
    monkeypatch.setenv("LAKE", f"{data}")
    monkeypatch.setenv("NET", f"{model}")
    written = {
        "relative": ("../../../lake", "../../../lake/net.onnx"),
        "absolute": (f"{data}", f"{model}"),
        "variable": ("${ENV:LAKE}", "${ENV:LAKE}/net.onnx"),
        "whole variable": ("${ENV:LAKE}", "${ENV:NET}"),
    }[how]
    edit(here, "samples/*.npy", f"{written[0]}/*.npy")
    edit(here, "path: model.onnx", f"path: {written[1]}")
    assert main(["bundle", "digits"]) == 0
    inside = names(Path("digits.zip"))
    assert not any("unnamed" in name for name in inside)
    folder = unpacked(Path("digits.zip"), tmp_path / "elsewhere")
    (yaml,) = folder.rglob("project.yaml")
    assert str(tmp_path) not in yaml.read_text()
    assert "exit code 0" in folder.joinpath("log.txt").read_text()
    assert str(tmp_path) not in folder.joinpath("log.txt").read_text()


@pytest.mark.parametrize("name", ["samples/0000.npy", "model.onnx"])
def test_a_link_to_what_no_key_names_is_refused_until_it_is_allowed(
    here, capsys, tmp_path, name
) -> None:
    file = here.project / name
    secret = tmp_path / "secret"
    secret.write_bytes(file.read_bytes())
    file.unlink()
    file.symlink_to(secret)
    command = ["bundle", "digits", "--no-build"]
    assert main(command) == 2
    error = capsys.readouterr().err
    assert f"`{file.name}` is a link to a file that the project does not name" in error
    assert not Path("digits.zip").exists()
    assert main([*command, "--follow-links"]) == 0
    assert any(each.endswith(name) for each in names(Path("digits.zip")))


def test_a_linked_yaml_file_is_refused(here: Workspace, capsys: Output, tmp_path: Path) -> None:
    tmp_path.joinpath("gates.yaml").write_text("- {cosine: 0.5}\n")
    here.project.joinpath("gates.yaml").symlink_to(tmp_path / "gates.yaml")
    assert main(["bundle", "digits", "--no-build"]) == 2
    assert "`gates.yaml` is a link" in capsys.readouterr().err


@pytest.mark.slow
def test_a_project_that_fails_is_packed_with_its_error(here, capsys, tmp_path) -> None:
    edit(here, "scale: 0.0625", "scale: 0.0625\n    layout: NHWC")
    assert main(["bundle", "digits"]) == 0
    told = capsys.readouterr().out
    log = unpacked(Path("digits.zip"), tmp_path).joinpath("log.txt").read_text()
    code = int(log.rsplit("exit code ", 1)[1])
    assert code in (2, 3, 4)
    assert f"its own build ends with {code}" in told
    assert "error: " in log


def test_an_unknown_project_is_one_error(here: Workspace, capsys: Output) -> None:
    assert main(["bundle", "digit"]) == 2
    assert capsys.readouterr().err.startswith("error: no project `digit`")


def test_a_file_that_cannot_be_written_is_one_error(here: Workspace, capsys: Output) -> None:
    here.root.joinpath("file").write_text("")
    assert main(["bundle", "digits", "--no-build", "-o", "file/x.zip"]) == 5
    assert capsys.readouterr().err.startswith("error: cannot write")


@pytest.mark.parametrize("count", ["0", "-1", "many"])
def test_a_number_of_samples_that_is_none_is_refused(here, capsys, count) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["bundle", "digits", f"--samples={count}"])
    assert ended.value.code == 2
    assert "neither a number of samples" in capsys.readouterr().err
