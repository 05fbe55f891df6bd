"""What is no plain file is one error, as whatever it is named; nothing waits for a pipe's end."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from forks import run_npumake
from npumake.cache.signature import FileDigests
from npumake.errors import ProjectError
from npumake.project.document import read_source
from npumake.project.files import FileSource, pattern_files, source_files
from workspaces import REPO

PROJECT = """\
model: {path: model.onnx}
inputs: {image: {offset: 128, mean: 0, scale: 0.0625}}
data: {image: {files: samples/*.npy}}
targets: [rdk-x5]
calibration: {method: max}
"""


def bound(path: Path) -> None:
    """A path of a socket may have a hundred letters."""
    here = os.open(path.parent, os.O_RDONLY)
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(f"/proc/self/fd/{here}/{path.name}")
    os.close(here)


KINDS: dict[str, Callable[[Path], object]] = {
    "link to itself": lambda path: path.symlink_to(path.name),
    "pipe": os.mkfifo,
    "socket": bound,
    "memory": lambda path: path.symlink_to("/proc/self/mem"),
    "environment": lambda path: path.symlink_to("/proc/self/environ"),
    "endless": lambda path: path.symlink_to("/dev/zero"),
    "never ready": lambda path: path.symlink_to("/proc/kmsg"),
    "of the kernel": lambda path: path.symlink_to("/sys/kernel/profiling"),
}


@pytest.fixture(params=KINDS)
def special(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "p" / "special.npy"
    path.parent.mkdir()
    KINDS[request.param](path)
    return path


def test_no_digest_is_of_it(special, tmp_path):
    with pytest.raises(FileNotFoundError):
        FileDigests(tmp_path / "cache" / "files").of(special)


def test_it_is_no_source_and_no_yaml(special):
    for many in (False, True):
        source = FileSource(("model",), special.name, many)
        assert source_files(special.parent, source) == ()
    with pytest.raises(ProjectError, match="plain file"):
        read_source(special)


@pytest.mark.parametrize("pattern", ["/proc/**", "/proc/self/*", "/sys/**/*", "/dev/fd/*"])
def test_nothing_the_kernel_makes_up_matches_a_pattern(pattern, tmp_path):
    assert pattern_files(tmp_path, pattern) == ()


@pytest.mark.parametrize("kind", ["link to itself", "pipe", "socket", "endless"])
def test_a_pattern_that_matches_it_is_refused(kind, tmp_path):
    KINDS[kind](tmp_path / "special.npy")
    with pytest.raises(ProjectError, match="plain file") as caught:
        pattern_files(tmp_path, "*.npy")
    assert str(caught.value.where).endswith("special.npy")
    (tmp_path / "folder.npy").mkdir()
    (tmp_path / "dead.npy").symlink_to("nothing")
    assert pattern_files(tmp_path, "[df]*.npy") == ()


def named(key: str, file: str) -> str:
    """A project that names the file by that key."""
    replaced = {
        "model": ("model.onnx", file),
        "samples": ("samples/*.npy", file),
        "pattern": ("samples/*.npy", f"{file[:-4]}*.npy"),
    }
    if key in replaced:
        return PROJECT.replace(*replaced[key])
    if key == "config":
        return f"dialect: hb_mapper\nconfig: {file}\n"
    more = {
        "operators": f"custom_operators: [{file}]",
        "with": f"custom_operators: [{{files: ops.py, with: [{file}]}}]",
        "metric": f"evaluation: {{metric: '{file}:f', dataset: {{files: samples/*.npy}}}}",
        "labels": f"evaluation: {{dataset: {{files: samples/*.npy, labels: {file}}}}}",
    }
    return PROJECT + more[key] + "\n"


NAMED = ["model", "samples", "pattern", "config", "operators", "with", "metric", "labels"]
YAML = ["project.yaml", "calibration.yaml", "data.yaml"]


@pytest.mark.slow
@pytest.mark.parametrize("key", [*NAMED, *YAML])
@pytest.mark.parametrize("kind", ["link to itself", "pipe", "memory", "never ready"])
def test_a_build_says_so_once_and_ends(kind, key, tmp_path):
    folder = tmp_path / "p"
    (folder / "samples").mkdir(parents=True)
    shutil.copy(REPO / "projects/digits/model.onnx", folder)
    np.save(folder / "samples" / "0.npy", np.zeros((1, 1, 8, 8), np.uint8))
    (folder / "ops.py").write_text("")
    suffix = ".py" if key in ("operators", "with", "metric") else ".npy"
    file = folder / (key if key in YAML else f"special{suffix}")
    KINDS[kind](file)
    if key != "project.yaml":
        text = PROJECT if key in YAML else named(key, file.name)
        section = f"{file.stem}:"
        lines = [line for line in text.splitlines() if not line.startswith(section)]
        (folder / "project.yaml").write_text("\n".join(lines))
    run = run_npumake("build", folder=folder)
    said = run.stdout + run.stderr
    assert "Traceback" not in said
    assert (run.returncode, said.count("error:")) == (2, 1), said
