"""RUNTIMES: by Target.backend, what runs the compiled file on this machine, and how.

    .hybrid              our own runtime, from the bytes of the file
    .tflite              LiteRT; of an Ethos-U the file that Vela was given
    .vmfb                IREE, where the code is for this processor
    .onnx                onnxruntime
    OpenVINO's IR        OpenVINO, in the interpreter that NPUMAKE_OPENVINO_PYTHON names

What is not listed runs on its chip alone.
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
    """A quantized graph, its program, and the file that a compiler made of them."""

    graph: Graph
    program: Program
    target: Target
    data: bytes


class Runtime(NamedTuple):
    """`distribution` is what must be installed, empty where it always is; `job` of a file, what it
    is fed, and whether every tensor is wanted."""

    name: str
    distribution: str
    job: Callable[[CompiledPart, Sequence[Feeds], bool], Job]
    note: str = ""


def why_not_run(target: Target) -> str:
    """Why no file for the target is run on this machine; empty where it is."""
    runtime = RUNTIMES.get(target.backend)
    if runtime is None:
        return f"a file for {target.name} runs on its chip alone"
    if target.backend == OPENVINO:
        adapter = ADAPTERS[OPENVINO]
        return "" if versions(adapter) else f"{adapter.variable} names no interpreter that has it"
    if runtime.distribution and not _is_installed(runtime.distribution):
        return f"{runtime.name} is not installed: {install_line(runtime.distribution)}"
    processor = target.iree
    if processor is not None and not runs_here(processor.triple, processor.cpu):
        return f"its code is for {processor.cpu}, not for this machine's processor"
    return ""


def job_of(part: CompiledPart, feeds: Sequence[Feeds], every: bool = False) -> Job:
    """The file of `part` and what it is fed, laid out as the file takes it."""
    return RUNTIMES[part.target.backend].job(part, feeds, every)


def answers(part: CompiledPart, made: Iterator[Arrays]) -> Iterator[Arrays]:
    """By the names of the model's outputs, per feed, its axes in the order of the model's."""
    size = batch(part.graph) if part.target.backend == "hybrid" else 1
    if part.target.backend in ("tflite", "vela", "iree"):
        drawn = drawing(part.program, part.graph)
        for arrays in made:
            yield _laid_back(drawn, part.program, arrays)
        return
    for arrays in made:
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
    return Job(part.data, ".tflite", _laid(part, feeds), every)


def _before_vela(part: CompiledPart, feeds: Sequence[Feeds], every: bool) -> Job:
    return Job(tflite_file(part.program, part.graph), ".tflite", _laid(part, feeds), every)


def _vmfb(part: CompiledPart, feeds: Sequence[Feeds], every: bool) -> Job:
    return Job(part.data, ".vmfb", _laid(part, feeds))


def _openvino(part: CompiledPart, feeds: Sequence[Feeds], every: bool) -> Job:
    adapter = ADAPTERS[OPENVINO]
    interpreter = os.path.abspath(os.environ[adapter.variable])
    command = (interpreter, "-I", str(SCRIPTS / adapter.runs), part.target.told["device"])
    return Job(part.data, ".zip", feeds, command=command)


def _laid(part: CompiledPart, feeds: Sequence[Feeds]) -> list[Arrays]:
    """Images NHWC, where the file takes them so."""
    drawn = drawing(part.program, part.graph)
    orders = {n: o for n, (_, o) in zip(part.program.inputs, drawn.inputs, strict=True)}
    return [
        {n: np.array(feed[n].transpose(o), order="C") for n, o in orders.items()} for feed in feeds
    ]


def _laid_back(drawn: TFLiteNetwork, program: Program, arrays: Arrays) -> Arrays:
    """What has another shape than the file is to give stays as it is."""
    found: dict[str, np.ndarray] = {}
    for name, (index, order) in zip(program.outputs, drawn.outputs, strict=True):
        made = arrays[name]
        is_laid = made.shape == drawn.draft.tensors[index].shape
        found[name] = made.transpose(np.argsort(order)) if is_laid and order else made
    return found


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
    "vela": Runtime("LiteRT", "ai-edge-litert", _before_vela, "the .tflite that Vela was given"),
}
