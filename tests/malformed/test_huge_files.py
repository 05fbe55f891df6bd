"""A model larger than its format can hold, which may be a hole on the disk, is refused unread."""

from __future__ import annotations

from pathlib import Path

import pytest

from malformed.models import project
from malformed.runner import Case, Server, check

HUGE = 6 << 30
SAID = ("a model of 6,442,450,944 bytes; no format holds more than 2 GiB in one file",)
VERBS = {
    "check": ("check", "m.onnx", "--target", "rdk-x5"),
    "new": ("new", "n", "--model", "m.onnx"),
    "show": ("show", "m.onnx"),
    "run": ("run", "m.onnx", "-i", "samples/0000.npy"),
    "bench": ("bench", "m.tflite"),
    "synap": (
        "synap",
        "convert",
        "--target",
        "SL1680",
        "--model",
        "m.onnx",
        "--out-dir",
        "out/made",
    ),
}


def hole(folder: Path, name: str) -> None:
    with (folder / name).open("wb") as file:
        file.truncate(HUGE)


def holes(folder: Path) -> None:
    for name in ("m.onnx", "m.tflite"):
        hole(folder, name)


def of_model(name: str, weights: bool = False):
    """A project whose model, or what holds its weights, is a hole."""

    def damage(folder: Path) -> None:
        project(name, b"", **({"w_bin": b""} if weights else {}))(folder)
        hole(folder, "held/w.bin" if weights else name)

    return damage


@pytest.mark.parametrize("name", ["m.onnx", "m.tflite", "m.pb", "m.prototxt"])
@pytest.mark.parametrize("weights", [False, True], ids=["model", "weights"])
def test_a_build_refuses_it(name: str, weights: bool, server: Server, tmp_path: Path) -> None:
    check(Case(name, of_model(name, weights), ("build",), 2, SAID), server, tmp_path / "w")


def test_what_cannot_be_mapped_is_no_bundle(server: Server, tmp_path: Path) -> None:
    command, said = ("verify", "-q", "m.onnx", "-b", "m.tflite"), "cannot be mapped into memory"
    check(Case("a bundle", holes, command, 3, (said,)), server, tmp_path / "w")


@pytest.mark.parametrize("command", [("show", "m.json"), ("diff", "m.json", "m.json")])
def test_a_document_is_refused_too(
    command: tuple[str, ...], server: Server, tmp_path: Path
) -> None:
    said = "a document of 6,442,450,944 bytes; it may have 268,435,456"

    def damage(folder: Path) -> None:
        hole(folder, "m.json")

    check(Case("a document", damage, command, 2, (said,)), server, tmp_path / "w")


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_refuses_it(verb: str, server: Server, tmp_path: Path) -> None:
    check(Case(verb, holes, VERBS[verb], 2, SAID), server, tmp_path / "w")
