"""npumake new: write a commented project around a model, which builds without edits

It copies the model, reads its inputs, layouts and opset, and creates random samples for you to
replace. It overwrites nothing. With --images it recognizes the model, measures on the pictures how
it is fed, and writes colors, mean, scale and transforms, with the evidence in comments. It says
what it is not sure of.

example:
  npumake new projects/mobilenet --model mobilenet.onnx
  npumake new projects/mobilenet --model mobilenet.tflite --images photos --labels labels.txt
  npumake new projects/yolo --model yolov8n.onnx --images street --fed-type nv12
  npumake new projects/mobilenet --model mobilenet.onnx --target rdk-x5 --target ara240
  npumake new projects/faces --model faces.prototxt --weights faces.caffemodel
  npumake new . --config resnet50_config.yaml    # in a repository of hb_mapper or hb_compile
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from npumake.cache.folders import cure_of
from npumake.cli.fed_types import COLOR_TYPES
from npumake.cli.model_file import WEIGHTS, ModelFiles, held_files
from npumake.cli.open_sizes import closed_inputs, random_sample
from npumake.cli.projects import typed
from npumake.cli.schema_file import relative_path, schema_file, write_schema
from npumake.errors import CacheError, ProjectError, did_you_mean

if TYPE_CHECKING:
    from npumake.cli.picture_project import ProjectFiles
    from npumake.cli.template import Facts, TemplateInput
    from npumake.graph import Graph

SAMPLES = 16
TARGET = "rdk-x5"  # the default


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", metavar="DIR", type=Path, help="it must not exist yet")
    kind = parser.add_mutually_exclusive_group(required=True)
    kind.add_argument("--model", metavar="M", type=Path, help="the float model")
    kind.add_argument("--config", metavar="YAML", type=Path, help="of hb_mapper or hb_compile")
    parser.add_argument("--weights", metavar="W", type=Path, help="the .caffemodel of a .prototxt")
    parser.add_argument("--target", metavar="CHIP", action="append", help="see npumake targets")
    parser.add_argument("--images", metavar="FOLDER", type=Path, help="pictures to calibrate with")
    parser.add_argument(
        "--labels",
        metavar="FILE",
        type=Path,
        help="class names (.txt, .yaml), or labels of the pictures (.csv, COCO's .json)",
    )
    parser.add_argument(
        "--fed-type",
        choices=COLOR_TYPES,
        help="the color format at runtime; default: that of training",
    )


def run(arguments: argparse.Namespace) -> int:
    from npumake.cli.picture_project import picture_project
    from npumake.cli.template import DODO, Facts
    from npumake.quant.qdq.brought_grids import carries_grids
    from npumake.targets.reader import known_targets

    if arguments.config:
        return _of_vendor(arguments)
    directory, targets = arguments.directory, tuple(dict.fromkeys(arguments.target or [TARGET]))
    _refuse(arguments)
    chips = known_targets()
    for target in targets:
        if target not in chips:
            raise ProjectError(f"unknown target `{target}`", hint=did_you_mean(target, chips))
    model_files = held_files(arguments.model, arguments.weights)
    graph = _read(model_files)
    schema = schema_file(directory)
    facts = Facts(arguments.model.name, graph.opset, model_files.pattern, carries_grids(graph))
    write = picture_project if arguments.images else _random_project
    project = write(arguments, model_files, graph, facts, relative_path(schema, directory), targets)
    files: dict[str, bytes] = {
        arguments.model.name: model_files.model.read(),
        "dodo.py": DODO.encode(),
        **project.files,
    }
    files |= {f"{WEIGHTS}/{file.name}": file.read() for file in model_files.weights}
    # The YAML comes last, so that an interrupted run leaves no project.
    _write(directory, files, project.random, project.text)
    if not schema.is_file():
        write_schema(schema)
    print(f"{directory}: {arguments.model.name}, opset {graph.opset}, for {', '.join(targets)}")
    print("\n".join(project.lines))
    print(f"next: read {directory / 'project.yaml'}, then npumake build {_named(directory)}")
    return 0


def _of_vendor(arguments: argparse.Namespace) -> int:
    """Raises PipelineError."""
    from npumake.cli.vendor_project import write_vendor_project

    for option in ("weights", "target", "images", "labels", "fed_type"):
        if getattr(arguments, option):
            name = f"--{option.replace('_', '-')}"
            raise ProjectError(f"`{name}` is for a model's own project", name, "leave it out")
    _refuse_name(arguments.directory)
    print("\n".join(write_vendor_project(arguments.directory, arguments.config)))
    print(f"next: npumake build {_named(arguments.directory)}, then npumake lock and npumake ci")
    return 0


def _random_project(
    arguments: argparse.Namespace,
    model_files: ModelFiles,
    graph: Graph,
    facts: Facts,
    schema: str,
    targets: Sequence[str],
) -> ProjectFiles:
    """A project with random samples. Raises GraphError."""
    from npumake.cli.picture_project import ProjectFiles
    from npumake.cli.template import project_text, with_folders
    from npumake.targets.reader import known_targets

    inputs = with_folders(closed_inputs(model_files, graph))
    lines = [
        f"  {input_.folder}: {SAMPLES} RANDOM samples for `{input_.name}`; replace them"
        for input_ in inputs
    ]
    text = project_text(schema, facts, inputs, targets, ", ".join(known_targets()))
    return ProjectFiles(text, {}, tuple(inputs), tuple(lines))


def _refuse(arguments: argparse.Namespace) -> None:
    _refuse_directory(arguments.directory)
    for option in ("labels", "fed_type"):
        if getattr(arguments, option) and not arguments.images:
            name = f"--{option.replace('_', '-')}"
            raise ProjectError(f"`{name}` is for a project with pictures", name, "add --images")


def _refuse_directory(directory: Path) -> None:
    _refuse_name(directory)
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise ProjectError("there is something already", str(directory), "name a new folder")


def _refuse_name(directory: Path) -> None:
    from npumake.project.expand import NAME

    name = Path(os.path.abspath(directory)).name
    if not NAME.fullmatch(name):
        hint = "use letters, digits, `_`, `.` and `-`"
        raise ProjectError(f"`{name}` cannot name a project", str(directory), hint)


def _named(directory: Path) -> str:
    """How a command in the current directory names the project: by its name or its folder."""
    folder = Path(os.path.abspath(directory))
    return "." if folder == Path.cwd() else typed(folder, folder.name)


def _read(model_files: ModelFiles) -> Graph:
    from npumake.frontends import read_model

    return read_model(model_files.model.read(), model_files.model.name, model_files.weights)


def _write(
    directory: Path, files: Mapping[str, bytes], inputs: Sequence[TemplateInput], text: str
) -> None:
    import numpy as np

    try:
        for number, model_input in enumerate(inputs):
            (directory / model_input.folder).mkdir(parents=True)
            for sample in range(SAMPLES):
                seed, grid = number * SAMPLES + sample, model_input.grid
                reach = None if grid is None else grid.reach
                values = random_sample(model_input.dtype, model_input.shape, seed, reach)
                np.save(directory / model_input.folder / f"{sample:04}.npy", values)
        for name, content in files.items():
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            (directory / name).write_bytes(content)
        (directory / "project.yaml").write_text(text, encoding="utf-8")
    except OSError as error:
        message = f"cannot write the project: {error.strerror}"
        raise CacheError(message, str(directory), cure_of(directory, error.errno)) from None
