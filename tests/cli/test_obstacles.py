"""A file where a folder must be, or a folder where a file must: one error, whose hint helps."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from workspaces import Workspace, few

BUNDLE = "projects/digits/out/digits.rdk-x5.hybrid"
PICTURES = ("-m", "mobilenetv1", "-i", "pictures")
SYNAP = ("synap", "convert", "--model", "projects/digits/model.onnx", "--target", "sl1680")
# Commands that make folders: `at` stands for a path where a folder must be.
FOLDERS = {
    "attest": ("attest", BUNDLE, "--output", "at"),
    "bench": ("bench", BUNDLE, "--frame_count", "1", "--profile_path", "at"),
    "bundle": ("bundle", "digits", "--no-build", "-o", "at/x.zip"),
    "cache export": ("cache", "export", "at/x.tar"),
    "cache keygen": ("cache", "keygen", "-o", "at/key"),
    "ci": ("ci", "--junit", "at/x.xml", "--sarif", "at/x.sarif", "--summary", "at/x.md"),
    "debug": ("debug", "runall", "digits:ara240", "-s", "at"),
    "graph": ("graph", "--svg", "at/x.svg"),
    "handover": ("handover", "digits", "--target", "ara240", "--out", "at"),
    "modify": ("modify", BUNDLE, "-r", "image_quantized", "-o", "at/x.hybrid"),
    "new": ("new", "at/net", "--model", "projects/digits/model.onnx"),
    "pack": ("pack", BUNDLE, "-o", "at/x.hybrid"),
    "perf": ("perf", BUNDLE, "--html", "at"),
    "preprocess": ("preprocess", *PICTURES, "-o", "at"),
    "report": ("report", "--workspace", "--output", "at"),
    "run": ("run", BUNDLE, "-i", "digit.png", "--save", "at/x.npz"),
    "synap": (*SYNAP, "--out-dir", "at"),
}
KINDS = ("file", "file above", "link to nothing")
SAMPLED = {"file": ("handover", "new", "perf", "report"), "link to nothing": ("bundle",)}
CASES = [(verb, kind) for kind in KINDS for verb in FOLDERS]
OWN_FOLDERS = ("projects/digits/out", "projects/digits/out/.npumake", "cache", "cache/blobs")


def remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def prepare(workspace: Workspace) -> None:
    from PIL import Image

    (workspace.root / "pictures").mkdir()
    Image.new("RGB", (320, 320)).save(workspace.root / "pictures" / "a.png")
    Image.new("L", (8, 8)).save(workspace.root / "digit.png")


def error_of(workspace: Workspace, command: tuple[str, ...], obstacle: Path) -> None:
    """Runs the command, whose one error names the obstacle and what to do with it."""
    run = workspace.npumake(*command, check=False)
    text = run.stdout + run.stderr
    assert run.returncode in range(2, 8), text
    assert "Traceback" not in text
    assert text.count("error: ") == 1, text
    hint = re.search(r"hint: (.*)", text)
    assert hint, text
    assert f"{obstacle.name}` must be a folder and is none: move or remove it" in hint[1]


@pytest.mark.slow
@pytest.mark.parametrize(("verb", "kind"), few(CASES, lambda c: c[0] in SAMPLED.get(c[1], ())))
def test_a_file_in_a_folders_place_is_named_and_without_it_the_command_works(
    built: Workspace, verb: str, kind: str
) -> None:
    prepare(built)
    obstacle = built.root / "place"
    path = "place/below" if kind == "file above" else "place"
    command = tuple(re.sub("^at(?=/|$)", path, word) for word in FOLDERS[verb])
    if kind == "link to nothing":
        obstacle.symlink_to("nowhere")
    else:
        obstacle.touch()
    error_of(built, command, obstacle)
    remove(obstacle)
    run = built.npumake(*command, check=False)
    assert run.returncode == 0 or "place" not in run.stdout + run.stderr, run.stderr


@pytest.mark.slow
@pytest.mark.parametrize("folder", OWN_FOLDERS)
def test_a_file_in_the_place_of_a_folder_of_builds_is_named(built: Workspace, folder: str) -> None:
    place = built.root / folder
    remove(place)
    place.touch()
    project = built.project / "project.yaml"
    project.write_text(project.read_text().replace("method: max", "method: max_percentile"))
    run = built.npumake("build", "digits", check=False)
    text = run.stdout + run.stderr
    assert "Traceback" not in text
    assert (
        run.returncode == 0
        or f"{place.name}` must be a folder and is none: move or remove it" in text
    ), text
    remove(place)
    built.npumake("build", "digits")


WRITERS = ("bundle", "graph", "modify", "pack")


def writing(verb: str, file: str) -> tuple[str, ...]:
    """The command, with its output to `file`."""
    return tuple(re.sub("^at/.*", file, word) for word in FOLDERS[verb])


@pytest.mark.slow
@pytest.mark.parametrize("file", ["x.file", ".", "..", "x.file/."])
@pytest.mark.parametrize("verb", few(WRITERS, lambda verb: verb == "graph"))
def test_a_folder_in_a_files_place_is_named(built: Workspace, verb: str, file: str) -> None:
    prepare(built)
    (built.root / "x.file").mkdir()
    run = built.npumake(*writing(verb, file), check=False)
    text = run.stdout + run.stderr
    assert (run.returncode in range(2, 8), text.count("error: ")) == (True, 1), text
    assert "is a folder: name a file in it, or move the folder" in text
    remove(built.root / "x.file")
    built.npumake(*writing(verb, "x.file"))


@pytest.mark.parametrize("verb", few(WRITERS, lambda verb: verb == "graph"))
def test_a_name_that_is_too_long_is_told_so(built: Workspace, verb: str) -> None:
    for file in (f"{'a' * 300}.x", f"{'a' * 300}/x"):
        run = built.npumake(*writing(verb, file), check=False)
        assert run.returncode in range(2, 8), run.stderr
        assert "hint: name a shorter path" in run.stderr
        assert "Traceback" not in run.stderr
