"""npumake new: write a commented project around a model, one that builds as it is

It copies the model, reads its inputs, layouts and opset, and creates random samples for you to
replace. It overwrites nothing.

example:
  npumake new projects/mobilenet --model mobilenet.onnx
  npumake new projects/mobilenet --model mobilenet.onnx --target rdk-x5 --target ara240
  npumake new projects/faces --model faces.prototxt --weights faces.caffemodel
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Container, Mapping, Sequence
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from npumake.cli.model_file import WEIGHTS, ModelFiles, held_files
from npumake.errors import CacheError, GraphError, ProjectError, did_you_mean
from npumake.make.memory import workspace
from npumake.project.sections import FilePath, Input, ModelSection

if TYPE_CHECKING:
    from npumake.cli.template import TemplateInput
    from npumake.graph import Graph

SAMPLES = 16
TARGET = "rdk-x5"  # the default
SCHEMA = "project.schema.json"
# Candidates for open image sizes, in pixels; the first that runs is written.
SIZES = (224, 256, 320, 416, 512, 640, 192, 128, 96, 64, 32)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", metavar="DIR", type=Path, help="it must not exist yet")
    parser.add_argument("--model", metavar="M", type=Path, required=True, help="the float model")
    parser.add_argument("--weights", metavar="W", type=Path, help="the .caffemodel of a .prototxt")
    parser.add_argument("--target", metavar="CHIP", action="append", help="see npumake list")


def run(arguments: argparse.Namespace) -> int:
    from npumake.cli.template import DODO, Facts, project_text, with_folders
    from npumake.project.schema import editor_schema
    from npumake.quant.qdq.brought_grids import carries_grids
    from npumake.targets.reader import known_targets

    directory, targets = arguments.directory, tuple(dict.fromkeys(arguments.target or [TARGET]))
    _refuse_directory(directory)
    chips = known_targets()
    for target in targets:
        if target not in chips:
            raise ProjectError(f"unknown target `{target}`", hint=did_you_mean(target, chips))
    model_files = held_files(arguments.model, arguments.weights)
    graph = _read(model_files)
    inputs = with_folders(_inputs(model_files, graph))
    schema, needs_schema = _schema(directory)
    facts = Facts(arguments.model.name, graph.opset, model_files.pattern, carries_grids(graph))
    text = project_text(schema, facts, inputs, targets, ", ".join(chips))
    files: dict[str, bytes] = {
        arguments.model.name: model_files.model.read(),
        "dodo.py": DODO.encode(),
    }
    files |= {f"{WEIGHTS}/{file.name}": file.read() for file in model_files.weights}
    if needs_schema:
        printed = json.dumps(editor_schema(), indent=2, ensure_ascii=False)
        files[SCHEMA] = f"{printed}\n".encode()
    # The YAML comes last, so that an interrupted run leaves no project.
    _write(directory, files, inputs, text)
    print(f"{directory}: {arguments.model.name}, opset {graph.opset}, for {', '.join(targets)}")
    for model_input in inputs:
        name = model_input.name
        print(f"  {model_input.folder}: {SAMPLES} RANDOM samples for `{name}`; replace them")
    print(f"next: read {directory / 'project.yaml'}, then run npumake build there")
    return 0


def _refuse_directory(directory: Path) -> None:
    from npumake.project.expand import NAME

    name = Path(os.path.abspath(directory)).name
    if not NAME.fullmatch(name):
        hint = "use letters, digits, `_`, `.` and `-`"
        raise ProjectError(f"`{name}` cannot name a project", str(directory), hint)
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise ProjectError("there is something already", str(directory), "name a new folder")


def _read(model_files: ModelFiles) -> Graph:
    from npumake.frontends import read_model

    return read_model(model_files.model.read(), model_files.model.name, model_files.weights)


def _inputs(model_files: ModelFiles, graph: Graph) -> Sequence[TemplateInput]:
    """The model's inputs. Open sizes become the first of SIZES with which the model runs.

    Raises GraphError if none runs, and for an input of unknown rank, of text or of size zero.
    """
    from npumake.cli.template import TemplateInput
    from npumake.graph import dtype, open_dimensions

    dims: dict[str, tuple[Any, ...]] = {}
    for value in graph.inputs:
        if value.shape is None:
            hint = "write a project.yaml by hand, with its shape"
            raise GraphError(
                f"input `{value.name}` does not tell its shape", model_files.model.path, hint
            )
        if dtype(value) == "object":
            raise GraphError(
                f"input `{value.name}` holds strings, not numbers", model_files.model.path
            )
        if sizes := [d for d in value.shape if isinstance(d, int) and d < 1]:
            raise GraphError(
                f"input `{value.name}` has a size of {sizes[0]}", model_files.model.path
            )
        dims[str(value.name)] = tuple(d if isinstance(d, int) else d.value for d in value.shape)
    shapes = _fitting(model_files, dims)
    return [
        TemplateInput(str(v.name), dtype(v), shapes[str(v.name)], open_dimensions(v))
        for v in graph.inputs
    ]


def _fitting(
    model_files: ModelFiles, dims: Mapping[str, tuple[Any, ...]]
) -> Mapping[str, tuple[int, ...]]:
    """A shape for each input. A leading open dimension, and others of its name, are a batch of 1.
    Other open dimensions are one of SIZES; the middle of three may be a batch, as in the state of
    a recurrent layer.
    """
    batch = {sizes[0] for sizes in dims.values() if sizes and isinstance(sizes[0], str)}
    is_open = any(not isinstance(dim, int) for sizes in dims.values() for dim in sizes)
    refusals: list[GraphError] = []
    for size, middle in [(n, m) for n in SIZES for m in (n, 1)] if is_open else [(1, 1)]:
        shapes = {name: _closed(sizes, batch, size, middle) for name, sizes in dims.items()}
        try:
            _try(model_files, shapes)
        except GraphError as error:
            refusals.append(error)
        else:
            return shapes
    raise refusals[0]


def _closed(dims: Sequence[Any], batch: Container[Any], size: int, middle: int) -> tuple[int, ...]:
    sizes = 1, middle if len(dims) == 3 else size, *repeat(size, len(dims))
    pairs = zip(dims, sizes, strict=False)
    return tuple(dim if isinstance(dim, int) else 1 if dim in batch else n for dim, n in pairs)


def _try(model_files: ModelFiles, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Runs the model as the first stage would import it. Raises GraphError."""
    from npumake.engine.ort import OrtSession
    from npumake.graph import dtype
    from npumake.stages.original_float import original_float

    inputs = {name: Input(shape=shape) for name, shape in shapes.items()}
    sources = {"model.path": (model_files.model,), "model.weights": model_files.weights}
    graph = original_float(ModelSection(FilePath(model_files.model.name)), inputs, sources)
    feeds = {str(v.name): _sample(dtype(v), shapes[str(v.name)], 0) for v in graph.inputs}
    OrtSession(graph.to_bytes()).run(None, feeds)


def _sample(dtype: str, shape: tuple[int, ...], seed: int) -> Any:
    """A seeded random sample: floats around 0, integers 0 or 1."""
    import numpy as np

    random = np.random.default_rng(seed)
    if np.issubdtype(np.dtype(dtype), np.floating):
        return random.standard_normal(shape).astype(dtype)
    return random.integers(0, 2, shape).astype(dtype)


def _schema(directory: Path) -> tuple[str, bool]:
    """The schema's path from the project, and whether it has to be written there."""
    shared = workspace(directory) / "schemas" / SCHEMA
    if not shared.is_file():
        return SCHEMA, True
    return Path(os.path.relpath(shared, os.path.abspath(directory))).as_posix(), False


def _write(
    directory: Path, files: Mapping[str, bytes], inputs: Sequence[TemplateInput], text: str
) -> None:
    import numpy as np

    try:
        for number, model_input in enumerate(inputs):
            (directory / model_input.folder).mkdir(parents=True)
            for sample in range(SAMPLES):
                values = _sample(model_input.dtype, model_input.shape, number * SAMPLES + sample)
                np.save(directory / model_input.folder / f"{sample:04}.npy", values)
        for name, content in files.items():
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            (directory / name).write_bytes(content)
        (directory / "project.yaml").write_text(text, encoding="utf-8")
    except OSError as error:
        message = f"cannot write the project: {error.strerror}"
        raise CacheError(message, str(directory)) from None
