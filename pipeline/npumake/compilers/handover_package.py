"""A hand-over: a directory from which a vendor's closed tool builds the file for the board.

    hb_mapper.yaml         the tool's YAML; or hb_compile.yaml, meta.yaml (SyNAP), form.yaml (Ara2)
    model.onnx             the trained model unchanged: these tools read older opsets, and fold and
                           assign nodes themselves; or Caffe's two files, or a .tflite. A float
                           model of a format that the tool does not read becomes this ONNX, and so
                           does one with frozen inputs, which no tool's YAML can express.
    calibration/<n>_<input>/<sample>   in the tool's format; one snapshot for Ara2
    convert.sh             the exact command
    README.txt             the contents, and project settings that the YAML cannot express
    handover.json          SHA-256 of all of these

Nothing in it depends on the date or the machine: the same project gives the same files.
"""

from __future__ import annotations

import io
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath

import numpy as np
import yaml

from npumake.borders.frozen_inputs import freeze_inputs, has_frozen
from npumake.compilers.handover import SCRIPT
from npumake.data.input_samples import InputSamples, ModelInput
from npumake.data.snapshot_file import SnapshotFile, snapshot_file
from npumake.dialects.edgefirst.handover import METADATA
from npumake.dialects.handover import (
    CALIBRATION,
    PRODUCTS,
    ClosedTool,
    HandoverDocument,
    HandoverRequest,
)
from npumake.dialects.tools import complete_document
from npumake.errors import ProjectError, Route
from npumake.frontends import read_model
from npumake.graph import Graph, downgraded, files_beside
from npumake.graph.qdq import QUANTIZE
from npumake.passes.fold_constants import fold_constants
from npumake.passes.take_branch import take_branch
from npumake.project.files import SourceFile, SourceFiles
from npumake.project.sections import Input

YAML_WIDTH = 100  # line width of the YAML
README, LIST = "README.txt", "handover.json"
ONNX = ".onnx"
MODEL, WEIGHTS = "model", "model.caffemodel"  # the first gets the suffix of the model
NO_SAMPLES = ("load", "skip")  # calibration methods without samples


def model_names(
    tool: ClosedTool, sources: SourceFiles, inputs: Mapping[str, Input]
) -> tuple[str, str | None]:
    """The model's files in the hand-over: the model, and Caffe's weights.

    A format that the tool does not read becomes an ONNX model, and so does a model with frozen
    inputs. Raises ProjectError for a tool that does not read that either.
    """
    (file,) = sources["model.path"]
    suffix = PurePosixPath(file.name).suffix.lower()
    if (suffix not in tool.models or has_frozen(inputs)) and ONNX in tool.models:
        return MODEL + ONNX, None
    if suffix not in tool.models:
        message = f"{tool.name} does not read {suffix} files"
        hint = f"it reads {', '.join(tool.models)}"
        raise ProjectError(message, Route("model.path"), hint)
    return MODEL + suffix, WEIGHTS if suffix == ".prototxt" else None


def sample_folders(inputs: Mapping[str, ModelInput]) -> dict[str, str]:
    """By input. The number comes first: two names may only differ in characters that folders cannot
    have."""
    return {
        name: f"{index}_{re.sub('[^A-Za-z0-9]+', '_', name)}" for index, name in enumerate(inputs)
    }


def own_snapshot(tool: ClosedTool, sets: Sequence[InputSamples]) -> SnapshotFile | None:
    """A snapshot of the project's samples for a tool that takes one. None if the project names
    its own, or a sample does not fit into one."""
    if not tool.snapshot or any(samples.snapshot is not None for samples in sets):
        return None
    return snapshot_file(sets)


def files(
    tool: ClosedTool,
    request: HandoverRequest,
    sources: SourceFiles,
    sets: Sequence[InputSamples],
    snapshot: SnapshotFile | None = None,
) -> Iterator[tuple[str, bytes]]:
    """Names and contents of the hand-over, created on demand. Raises PipelineError."""
    handover, command = complete_document(tool, request), tool.command(request.command_names)
    dumped = yaml.safe_dump(handover.document, sort_keys=False, width=YAML_WIDTH)
    yield tool.config, dumped.encode()
    yield from _model(request, sources)
    if tool.sample is not None and request.folders is not None:
        yield from _samples(tool, request.folders, sets)
    if snapshot is not None:
        yield snapshot
    if command:
        script = f'#!/bin/sh\ncd "$(dirname "$0")" || exit 1\nexec {shlex.join(command)}\n'
        yield SCRIPT, script.encode()
    yield README, _readme(tool, request, handover, command).encode()


def _model(request: HandoverRequest, sources: SourceFiles) -> Iterator[tuple[str, bytes]]:
    (model,) = sources["model.path"]
    data, weights = model.read(), sources.get("model.weights", ())
    is_own = PurePosixPath(request.model).suffix == PurePosixPath(model.name).suffix.lower()
    if not is_own or has_frozen(request.sections.inputs):
        data = _in_onnx(model, weights, request)
    yield request.model, data
    if request.weights is not None:
        (weights_file,) = weights
        yield request.weights, weights_file.read()
    elif request.model.endswith(".onnx"):
        by_name = {PurePosixPath(file.name).name: file for file in weights}
        for name in files_beside(data):
            yield name, _beside(by_name, name).read()
    for file in sources.get("model.metadata", ()):
        yield METADATA, file.read()
    snapshots = (files for route, files in sources.items() if route.endswith(".snapshot"))
    by_digest = {file.digest: file for files in snapshots for file in files}  # one for all inputs
    for file in by_digest.values():
        yield PurePosixPath(file.name).name, file.read()


def _in_onnx(model: SourceFile, weights: Sequence[SourceFile], request: HandoverRequest) -> bytes:
    """The model as ONNX, without its frozen inputs. An ONNX model keeps its opset; others get the
    newest that the tool documents. Raises GraphError for a model that this opset cannot express,
    ProjectError for one that is quantized already."""
    graph = read_model(model.read(), model.name, weights)
    if has_frozen(request.sections.inputs):
        graph = _frozen(graph, request)
    if graph.nodes(QUANTIZE):
        message = f"`{model.name}` is quantized already, and the vendor's tool quantizes itself"
        raise ProjectError(message, Route("model.path"), "hand over the float model")
    accepts = request.target.accepts
    if accepts is None or model.name.lower().endswith(ONNX):
        return graph.to_bytes()
    return downgraded(graph.with_shapes(), accepts.opset[-1], accepts.ir_version).to_bytes()


def _frozen(graph: Graph, request: HandoverRequest) -> Graph:
    """The graph without its frozen inputs, and without the branches and shapes they decide."""
    freeze_inputs(graph, request.sections.inputs)
    for value in graph.inputs:
        if entry := request.inputs.get(str(value.name)):
            graph.set_input_shape(value, entry.form.shape)
    graph = graph.with_shapes()
    while fold_constants(graph) + take_branch(graph):
        graph = graph.with_shapes()
    graph.drop_unused()
    return graph


def _beside(by_name: Mapping[str, SourceFile], name: str) -> SourceFile:
    file = by_name.get(PurePosixPath(name).name)
    if file is None:
        raise ProjectError(
            f"the model reads `{name}`, which the project does not list", Route("model.weights")
        )
    return file


def _samples(
    tool: ClosedTool, folders: Mapping[str, str], sets: Sequence[InputSamples]
) -> Iterator[tuple[str, bytes]]:
    for samples in sets:
        for index, item in enumerate(samples.items()):
            assert tool.sample is not None
            array = tool.sample(samples.values(item), samples.input)
            array = np.ascontiguousarray(array).reshape(samples.input.form.shape)
            name = f"{CALIBRATION}/{folders[samples.input.name]}/{index:05}{tool.suffix}"
            yield name, _npy(array) if tool.suffix == ".npy" else array.tobytes()


def _npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, array, version=(1, 0), allow_pickle=False)
    return file.getvalue()


def _readme(
    tool: ClosedTool, request: HandoverRequest, handover: HandoverDocument, command: Sequence[str]
) -> str:
    product = tool.product.format(prefix=request.prefix)
    how = (
        f"./{SCRIPT} runs, where the vendor's toolchain is installed:\n\n"
        f"    {shlex.join(command)}\n\nIt makes {PRODUCTS}/{product}."
        if command
        else f"It runs in EdgeFirst Studio: give it these files. It makes {product}."
    )
    missing = "".join(f"  {omission}\n" for omission in handover.omissions)
    omissions = (
        f"\nSettings of the project that {tool.config} cannot express:\n{missing}"
        if missing
        else ""
    )
    return (
        f"A model for {request.target.name}, to be compiled by {tool.name}.\n\n{how}\n{omissions}\n"
        "Written by npumake after the vendor's public documents. It was tested against a stand-in\n"
        "for the tool, never with the tool itself nor on the chip.\n"
    )
