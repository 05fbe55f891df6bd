"""RUNTIMES: how this machine runs a compiled file, by Target.backend.

    .hybrid              our own runtime, from the bytes of the file
    .tflite              LiteRT; for an Ethos-U, Vela's input file
    .vmfb                IREE, if the code is for this processor
    .onnx                onnxruntime
    OpenVINO's IR        OpenVINO, in the interpreter that NPUMAKE_OPENVINO_PYTHON names

Files of other backends run on their chip only.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import NamedTuple

import numpy as np

from npumake.borders.images import batch
from npumake.bundle.program import Program
from npumake.compilers.adapters.adapter import ADAPTERS, versions
from npumake.compilers.adapters.assets import SCRIPTS
from npumake.compilers.host import runs_here
from npumake.compilers.tflite import TFLiteNetwork, drawing, tflite_file
from npumake.engine.ort import Feeds
from npumake.extras import install_line
from npumake.graph import Graph
from npumake.runtime.isolated import Job
from npumake.targets.target import Target

Arrays = Mapping[str, np.ndarray]
OPENVINO = "openvino"


class CompiledPart(NamedTuple):
    """A quantized graph, its program, and the compiled file as bytes."""

    graph: Graph
    program: Program
    target: Target
    data: bytes


class Runtime(NamedTuple):
    """`distribution` is the Python package it needs, empty if always installed. `job` takes the
    file, the feeds, and whether to return every inner tensor."""

    name: str
    distribution: str
    job: Callable[[CompiledPart, Sequence[Feeds], bool], Job]
    note: str = ""


def why_not_run(target: Target) -> str:
    """Why this machine does not run files for the target; empty if it does."""
    runtime = RUNTIMES.get(target.backend)
    if runtime is None:
        return f"a file for {target.name} runs only on its chip"
    if target.backend == OPENVINO:
        adapter = ADAPTERS[OPENVINO]
        return "" if versions(adapter) else f"{adapter.variable} names no interpreter with OpenVINO"
    if runtime.distribution and not _is_installed(runtime.distribution):
        return f"{runtime.name} is not installed: {install_line(runtime.distribution)}"
    processor = target.iree
    if processor is not None and not runs_here(processor.triple, processor.cpu):
        return f"its code is for {processor.cpu}, not for this machine's processor"
    return ""


def job_of(part: CompiledPart, feeds: Sequence[Feeds], every: bool = False) -> Job:
    """The file of `part` and its feeds, in the file's axis order."""
    return RUNTIMES[part.target.backend].job(part, feeds, every)


def model_outputs(part: CompiledPart, outputs: Iterator[Arrays]) -> Iterator[Arrays]:
    """The outputs per feed, by the model's names and in its axis order."""
    size = batch(part.graph) if part.target.backend == "hybrid" else 1
    if part.target.backend in ("tflite", "vela", "iree"):
        network = drawing(part.program, part.graph)
        for arrays in outputs:
            yield _laid_back(network, part.program, arrays)
        return
    for arrays in outputs:
        if size == 1:
            yield arrays
            continue
        shapes = {name: part.program.tensors[name].shape for name in arrays}
        parts = {name: np.split(x, size) for name, x in arrays.items()}
        for at in range(size):
            yield {name: parts[name][at].reshape(shapes[name]) for name in arrays}


def _bundle(part: CompiledPart, feeds: Sequence[Feeds], every: bool) -> Job:
    size = batch(part.graph)
    if size == 1 or every:
        return Job(part.data, ".hybrid", feeds, every)
    whole = [*feeds, *[feeds[-1]] * (-len(feeds) % size)]
    groups = [whole[at : at + size] for at in range(0, len(whole), size)]
    stacked = [
        {name: np.concatenate([feed[name] for feed in group]) for name in group[0]}
        for group in groups
    ]
    return Job(part.data, ".hybrid", stacked)


def _onnx(part: CompiledPart, feeds: Sequence[Feeds], every: bool) -> Job:
    return Job(part.data, ".onnx", feeds)


def _tflite(part: CompiledPart, feeds: Sequence[Feeds], every: bool) -> Job:
    return Job(part.data, ".tflite", _ordered_feeds(part, feeds), every)


def _before_vela(part: CompiledPart, feeds: Sequence[Feeds], every: bool) -> Job:
    return Job(tflite_file(part.program, part.graph), ".tflite", _ordered_feeds(part, feeds), every)


def _vmfb(part: CompiledPart, feeds: Sequence[Feeds], every: bool) -> Job:
    return Job(part.data, ".vmfb", _ordered_feeds(part, feeds))


def _openvino(part: CompiledPart, feeds: Sequence[Feeds], every: bool) -> Job:
    adapter = ADAPTERS[OPENVINO]
    interpreter = os.path.abspath(os.environ[adapter.variable])
    command = (
        interpreter,
        "-I",
        str(SCRIPTS / adapter.runs),
        part.target.backend_options["device"],
    )
    return Job(part.data, ".zip", feeds, command=command)


def _ordered_feeds(part: CompiledPart, feeds: Sequence[Feeds]) -> list[Arrays]:
    """The feeds in the file's axis order: images as NHWC if it takes them so."""
    network = drawing(part.program, part.graph)
    orders = {n: o for n, (_, o) in zip(part.program.inputs, network.inputs, strict=True)}
    return [
        {n: np.array(feed[n].transpose(o), order="C") for n, o in orders.items()} for feed in feeds
    ]


def _laid_back(network: TFLiteNetwork, program: Program, arrays: Arrays) -> Arrays:
    """Outputs in the model's axis order; one of an unexpected shape stays as it is."""
    outputs: dict[str, np.ndarray] = {}
    for name, (index, order) in zip(program.outputs, network.outputs, strict=True):
        array = arrays[name]
        is_laid = array.shape == network.draft.tensors[index].shape
        outputs[name] = array.transpose(np.argsort(order)) if is_laid and order else array
    return outputs


def _is_installed(distribution: str) -> bool:
    try:
        version(distribution)
    except PackageNotFoundError:
        return False
    return True


RUNTIMES: Mapping[str, Runtime] = {
    "hybrid": Runtime("npumake's runtime", "", _bundle),
    "iree": Runtime("IREE", "iree-base-runtime", _vmfb),
    "onnx": Runtime("onnxruntime", "", _onnx),
    "openvino": Runtime("OpenVINO", "", _openvino),
    "tflite": Runtime("LiteRT", "ai-edge-litert", _tflite),
    "vela": Runtime("LiteRT", "ai-edge-litert", _before_vela, "Vela's input, the .tflite"),
}
