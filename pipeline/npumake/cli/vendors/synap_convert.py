"""npumake synap convert | version: the toolkit's converter, with the same metafile.

Only the vendor's tool writes the model.synap that a board loads. A model.hybrid holds the same
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

NO_SYNAP = "A board loads a model.synap, written by the vendor's toolkit. model.hybrid is not one."
NO_META = "metafile.yaml"  # file name of an empty metafile
LISTINGS = ("model_info.txt", "quantization_info.yaml", "quantization_entropy.txt")
POINTER = b"version https://git-lfs"  # first bytes of a Git LFS pointer
# Flags of the vendor's compiler or its container.
WITHOUT_EFFECT = {
    "--verbose": "without effect: progress is always shown",
    **dict.fromkeys(("--cpu-profiling", "--debug", "--preserve"), argparse.SUPPRESS),
}


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the commands; `act` takes the arguments and returns the exit code."""
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
        help="without effect: the file format of the vendor's toolkit",
    )
    convert.add_argument("--out-dir", type=Path, required=True, metavar="DIR")
    convert.add_argument("--silent", action="store_true", help="show errors only")
    help_text = "`npumake bench` prints the table of the layers"
    convert.add_argument("--profiling", action="store_true", help=help_text)
    for flag, reason in WITHOUT_EFFECT.items():
        convert.add_argument(flag, action="store_true", help=reason)
    for flag in ("--tools-dir", "--vssdk-dir"):
        convert.add_argument(flag, help=argparse.SUPPRESS)
    version_command = commands.add_parser("version", help="show the version")
    version_command.set_defaults(act=lambda _: print(_version()))


def _version() -> str:
    return f"npumake {version('npumake')}"


def _convert(arguments: argparse.Namespace) -> int:
    """Builds a project in this dialect in `<out-dir>/build`, with its cache in `<out-dir>`."""
    from npumake.cli.vendors.project import write_project
    from npumake.make.memory import workspace

    folder = arguments.out_dir / "build"
    project = _project(arguments, folder)  # with its errors, before anything is written
    write_project(folder, project)
    if arguments.meta is None:
        text = "# The command had no --meta: its next run overwrites this file.\n"
        (folder / NO_META).write_text(text, encoding="utf-8")
    if workspace(folder) == folder.absolute():
        os.environ.setdefault("NPUMAKE_CACHE", os.path.abspath(arguments.out_dir / "cache"))
    if arguments.silent:
        return _silently(arguments, folder)
    _build(arguments, folder)
    print("Conversion successful")
    return 0


def _silently(arguments: argparse.Namespace, folder: Path) -> int:
    from npumake.cli.reporter import Reporter
    from npumake.cli.screen import SCREEN

    try:
        with SCREEN.hushed():
            _build(arguments, folder)
    except SystemExit:
        if Reporter.first_error is not None:  # not shown yet
            raise Reporter.first_error from None
        raise
    return 0


def _project(arguments: argparse.Namespace, folder: Path) -> dict[str, Json]:
    """The keys of a project in `folder`. Raises ProjectError, also for errors in the metafile."""
    from npumake.cli.vendors.project import relative_path
    from npumake.dialects.synaptics.dialect import SYNAP
    from npumake.dialects.synaptics.keys import TARGETS

    if arguments.target not in TARGETS:
        hint = did_you_mean(arguments.target, TARGETS)
        raise ProjectError(f"unknown target `{arguments.target}`", "--target", hint)
    _refuse_pointer(arguments.model)
    model = {"path": arguments.model, "weights": arguments.weights}
    beside: dict[str, Json] = {
        "model": {key: relative_path(folder, file) for key, file in model.items() if file},
        "targets": [TARGETS[arguments.target]],
        "compile": {"prefix": "model", **({"profiling": True} if arguments.profiling else {})},
    }
    SYNAP.translate(_metafile(arguments), "", beside)  # its errors come before anything is written
    config = NO_META if arguments.meta is None else relative_path(folder, arguments.meta)
    return {"dialect": "synap", "config": config, **beside}


def _metafile(arguments: argparse.Namespace) -> Document:
    """The document of --meta; empty without one. Raises ProjectError."""
    from npumake.dialects.synaptics.dialect import SYNAP
    from npumake.project.document import parse_document

    return (
        SYNAP.read(arguments.meta).document if arguments.meta else parse_document(b"", "metafile")
    )


def _refuse_pointer(model: Path) -> None:
    try:
        with model.open("rb") as stream:
            start = stream.read(len(POINTER))
    except OSError as error:
        raise ProjectError(f"cannot read the model: {error.strerror}", str(model)) from None
    if start == POINTER:
        hint = "fetch the file that it links to"
        raise ProjectError("this is a Git LFS pointer, not a model", str(model), hint)


def _build(arguments: argparse.Namespace, folder: Path) -> None:
    from npumake.cli.vendors.command import SYNAP, Product, build_product
    from npumake.stages.listings import Listings

    log, files = folder / "conversion_log.txt", {"compiled": "{prefix}.hybrid"}
    log.unlink(missing_ok=True)  # of an earlier run
    product = Product(SYNAP, arguments.out_dir, "model", NO_SYNAP, log, files)
    project_build = build_product(folder, product)
    (node,) = (node for node in project_build.plan.nodes if node.stage == "listings")
    texts = Listings.load(project_build.artifact(node)).texts
    for name in LISTINGS:
        if name in texts:
            (arguments.out_dir / name).write_text(texts[name], encoding="utf-8")
        else:
            (arguments.out_dir / name).unlink(missing_ok=True)  # of an earlier run
