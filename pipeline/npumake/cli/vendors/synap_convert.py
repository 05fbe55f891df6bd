"""npumake synap convert | version: the toolkit's converter, from the same metafile.

The model.synap that a board loads is made by the vendor's tool. A model.hybrid holds the same
integers for accuracy and CI.
"""

from __future__ import annotations

import argparse
import os
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from npumake.digest import Json
from npumake.errors import ProjectError, did_you_mean

if TYPE_CHECKING:
    from npumake.project.document import Document

NO_SYNAP = "A board loads a model.synap, which the vendor's toolkit makes. model.hybrid is not one."
NO_META = "metafile.yaml"  # of a project that is given none
LISTINGS = ("model_info.txt", "quantization_info.yaml", "quantization_entropy.txt")
POINTER = b"version https://git-lfs"  # how a file begins that stands for a larger one
# Flags that speak to the vendor's compiler or its container.
WITHOUT_EFFECT = {
    "--verbose": "without effect: what is done is always told",
    **dict.fromkeys(("--cpu-profiling", "--debug", "--preserve"), argparse.SUPPRESS),
}


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The commands, each with what it does as `act`: given → exit code."""
    convert = commands.add_parser("convert", help="convert and compile a model")
    convert.set_defaults(act=_convert)
    convert.add_argument("-v", "--version", action="version", version=_version())
    convert.add_argument("--model", type=Path, required=True, metavar="FILE")
    convert.add_argument("--weights", type=Path, metavar="FILE", help="of a Caffe model")
    convert.add_argument("--meta", type=Path, metavar="YAML", help="the conversion metafile")
    convert.add_argument("--target", type=str.upper, required=True, metavar="SOC")
    convert.add_argument(
        *("--out-format",),
        choices=("synap", "nb", "ebg"),
        default="synap",
        help="without effect: which file the vendor's toolkit would make",
    )
    convert.add_argument("--out-dir", type=Path, required=True, metavar="DIR")
    convert.add_argument("--silent", action="store_true", help="tell nothing but errors")
    help_text = "`npumake bench` prints the table of the layers"
    convert.add_argument("--profiling", action="store_true", help=help_text)
    for flag, reason in WITHOUT_EFFECT.items():
        convert.add_argument(flag, action="store_true", help=reason)
    for flag in ("--tools-dir", "--vssdk-dir"):
        convert.add_argument(flag, help=argparse.SUPPRESS)
    shown = commands.add_parser("version", help="show the version")
    shown.set_defaults(act=lambda _: print(_version()))


def _version() -> str:
    return f"npumake {version('npumake')}"


def _convert(given: argparse.Namespace) -> int:
    """A project that speaks the dialect, in `<out-dir>/build`, and its cache beside that."""
    from npumake.cli.vendors.project import laid_out
    from npumake.make.memory import workspace

    folder = given.out_dir / "build"
    project = _project(given, folder)  # with its errors, before anything is written
    laid_out(folder, project)
    if given.meta is None:
        text = "# No --meta was given: what is written here is not read by another run.\n"
        (folder / NO_META).write_text(text, encoding="utf-8")
    if workspace(folder) == folder.absolute():
        os.environ.setdefault("NPUMAKE_CACHE", os.path.abspath(given.out_dir / "cache"))
    if given.silent:
        return _silently(given, folder)
    _build(given, folder)
    print("Conversion successful")
    return 0


def _silently(given: argparse.Namespace, folder: Path) -> int:
    from npumake.cli.reporter import Reporter
    from npumake.cli.screen import SCREEN

    try:
        with SCREEN.hushed():
            _build(given, folder)
    except SystemExit:
        if Reporter.first_error is not None:  # told to nobody
            raise Reporter.first_error from None
        raise
    return 0


def _project(given: argparse.Namespace, folder: Path) -> dict[str, Json]:
    """What a project in `folder` says. Raises ProjectError, also for what the metafile says."""
    from npumake.cli.vendors.project import seen_from
    from npumake.dialects.synaptics.dialect import SYNAP
    from npumake.dialects.synaptics.keys import TARGETS

    if given.target not in TARGETS:
        hint = did_you_mean(given.target, TARGETS)
        raise ProjectError(f"unknown target `{given.target}`", "--target", hint)
    _refuse_pointer(given.model)
    model = {"path": given.model, "weights": given.weights}
    beside: dict[str, Json] = {
        "model": {key: seen_from(folder, file) for key, file in model.items() if file},
        "targets": [TARGETS[given.target]],
        "compile": {"prefix": "model", **({"profiling": True} if given.profiling else {})},
    }
    SYNAP.translate(_metafile(given), "", beside)  # its errors come before anything is written
    config = NO_META if given.meta is None else seen_from(folder, given.meta)
    return {"dialect": "synap", "config": config, **beside}


def _metafile(given: argparse.Namespace) -> Document:
    """An empty one where none is given. Raises ProjectError."""
    from npumake.dialects.synaptics.dialect import SYNAP
    from npumake.project.document import parse_document

    return SYNAP.read(given.meta).document if given.meta else parse_document(b"", "metafile")


def _refuse_pointer(model: Path) -> None:
    try:
        with model.open("rb") as stream:
            start = stream.read(len(POINTER))
    except OSError as error:
        raise ProjectError(f"cannot read the model: {error.strerror}", str(model)) from None
    if start == POINTER:
        hint = "fetch the file it stands for"
        raise ProjectError("this is a Git LFS pointer, not a model", str(model), hint)


def _build(given: argparse.Namespace, folder: Path) -> None:
    from npumake.cli.vendors.command import SYNAP, Product, finished
    from npumake.stages.listings import Listings

    log, files = folder / "conversion_log.txt", {"compiled": "{prefix}.hybrid"}
    log.unlink(missing_ok=True)  # of an earlier run
    product = Product(SYNAP, given.out_dir, "model", NO_SYNAP, log, files)
    found = finished(folder, product)
    (node,) = (node for node in found.plan.nodes if node.stage == "listings")
    texts = Listings.load(found.artifact(node)).texts
    for name in LISTINGS:
        if name in texts:
            (given.out_dir / name).write_text(texts[name], encoding="utf-8")
        else:
            (given.out_dir / name).unlink(missing_ok=True)  # of an earlier run
