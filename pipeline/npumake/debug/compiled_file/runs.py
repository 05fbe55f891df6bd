"""RUNTIMES: how this machine runs a compiled file, by Target.backend, and what it shows inside.

    .hybrid              our own runtime, from the bytes of the file; every tensor
    .tflite              LiteRT, every tensor; for an Ethos-U, Vela's input file
    .vmfb                IREE, if the code is for this processor; outputs alone
    .onnx                onnxruntime; every tensor of the file, in a second session
    OpenVINO's IR        OpenVINO, in the interpreter that NPUMAKE_OPENVINO_PYTHON names; the
                         tensors that its graph names, of the file as it is written

Files of other backends run on their chip only.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from math import prod
from typing import NamedTuple

import numpy as np

from npumake.borders.images import BATCH, batch
from npumake.bundle.program import Program, Tensor
from npumake.compilers.adapters.adapter import ADAPTERS, versions
from npumake.compilers.adapters.assets import SCRIPTS
from npumake.compilers.host import runs_here
from npumake.compilers.tflite import TFLiteNetwork, drawing, file_of
from npumake.engine.ort import Feeds
from npumake.extras import install_line
from npumake.graph import Graph, parse, producer
from npumake.graph.qdq import DEQUANTIZE, is_quantize
from npumake.runtime.isolated import FileRun, Isolated, Job
from npumake.targets.target import Target

Arrays = Mapping[str, np.ndarray]
OPENVINO = "openvino"
OF_TFLITE = ("tflite", "vela", "iree")  # with the axis order of a .tflite
OFF_GRID = 1 / 64  # codes; float32 holds a 16-bit code times a scale to 1/128 of a code


class CompiledPart(NamedTuple):
    """A quantized graph, its program, and the compiled file as bytes. `network` is the program as
    a .tflite draws it; of an unrolled LSTM that takes seconds, so it is drawn once."""

    graph: Graph
    program: Program
    target: Target
    data: bytes
    network: TFLiteNetwork | None = None

    def drawn_once(self) -> CompiledPart:
        is_drawn = self.network is None and self.target.backend in OF_TFLITE
        return self._replace(network=network_of(self)) if is_drawn else self


def network_of(part: CompiledPart) -> TFLiteNetwork:
    return part.network or drawing(part.program, part.graph)


class Runtime(NamedTuple):
    """`distribution` is the Python package it needs, empty if always installed. `job` takes the
    file, the feeds, and whether to return every inner tensor. With `fuses`, nodes whose tensors are
    not returned may round otherwise."""

    name: str
    distribution: str
    job: Callable[[CompiledPart, Sequence[Feeds], bool], Job]
    note: str = ""
    fuses: bool = False


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


@contextmanager
def running(part: CompiledPart, feeds: Sequence[Feeds]) -> Iterator[Iterator[FileRun]]:
    """The file, run on each of the feeds by a process of its own that starts at `with`.

    A run has the outputs and the inner tensors, by the program's names and in its axis order. The
    iterator raises RunError.
    """
    part = part.drawn_once()
    is_batched = batch(part.graph) > 1 and part.target.backend == "hybrid"
    with Isolated(job_of(part, feeds, not is_batched)) as process:
        runs = process.runs()
        yield _images(part, runs, feeds) if is_batched else _in_model_order(part, runs)


def runs_of(part: CompiledPart, feeds: Sequence[Feeds]) -> Iterator[FileRun]:
    """The runs of `running`. Raises RunError."""
    with running(part, feeds) as runs:
        yield from runs


def _in_model_order(part: CompiledPart, runs: Iterator[FileRun]) -> Iterator[FileRun]:
    lay = laid_inside(part)
    for outputs, inner in runs:
        yield FileRun(_laid_back(part, outputs), lay(inner))


def _images(
    part: CompiledPart, runs: Iterator[FileRun], feeds: Sequence[Feeds]
) -> Iterator[FileRun]:
    """Each image of the batches, with the inner tensors of a run of its own."""
    size, shapes = batch(part.graph), part.program.tensors
    alone = runs_of(part._replace(graph=_of_one(part.graph)), feeds)
    for batched in runs:
        pieces = {name: np.split(x, size) for name, x in batched.outputs.items()}
        for at, (_, inner) in zip(range(size), alone, strict=False):
            outputs = {n: xs[at].reshape(shapes[n].shape) for n, xs in pieces.items()}
            yield FileRun(outputs, inner)


def _of_one(graph: Graph) -> Graph:
    single = graph.copy()
    single.set_metadata({BATCH: "1"})
    return single


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
    return Job(part.data, ".onnx", feeds, every, tapped=_exposed(part) if every else b"")


def _exposed(part: CompiledPart) -> bytes:
    """The file with each of the program's tensors that it has as an output."""
    graph = parse(part.data, part.target.name)
    values, tensors = graph.values(), part.program.tensors
    names = [n for n in tensors if n in values and producer(values[n]) is not None]
    for name in names:
        graph.set_type(values[name], tensors[name].dtype)
    graph.expose(names)
    return graph.to_bytes()


def _tflite(part: CompiledPart, feeds: Sequence[Feeds], every: bool) -> Job:
    taps = _in_tflite(part) if every else ()
    return Job(part.data, ".tflite", _ordered_feeds(part, feeds), every, taps=taps)


def _before_vela(part: CompiledPart, feeds: Sequence[Feeds], every: bool) -> Job:
    return _tflite(part._replace(data=file_of(network_of(part))), feeds, every)


def _in_tflite(part: CompiledPart) -> tuple[str, ...]:
    """The names in the file of the program's tensors."""
    draft, tensors = network_of(part).draft, part.program.tensors
    orders = draft.file_orders().items()
    return tuple(draft.tensors[index].name for index, (name, _) in orders if name in tensors)


def _vmfb(part: CompiledPart, feeds: Sequence[Feeds], every: bool) -> Job:
    return Job(part.data, ".vmfb", _ordered_feeds(part, feeds))


def _openvino(part: CompiledPart, feeds: Sequence[Feeds], every: bool) -> Job:
    adapter = ADAPTERS[OPENVINO]
    interpreter = os.path.abspath(os.environ[adapter.variable])
    device = part.target.backend_options["device"]
    command = (interpreter, "-I", str(SCRIPTS / adapter.runs), device)
    taps = tuple(_in_openvino(part)) if every else ()
    return Job(part.data, ".zip", feeds, every, command, taps=taps)


def _in_openvino(part: CompiledPart) -> dict[str, str]:
    """The program's tensor by its name in the IR: a FakeQuantize has that of the dequantized
    tensor. A float tensor that only quantizers read is left inside its kernel."""
    codes = {
        str(node.outputs[0].name): str(node.inputs[0].name)
        for node in part.graph.nodes(DEQUANTIZE)
        if node.inputs[0] is not None and str(node.inputs[0].name) in part.program.tensors
    }
    floats = {
        name: name
        for name, value in part.graph.values().items()
        if name in part.program.tensors
        and part.program.tensors[name].scale is None
        and not (value.uses() and all(is_quantize(use.node) for use in value.uses()))
    }
    return floats | codes


def _ordered_feeds(part: CompiledPart, feeds: Sequence[Feeds]) -> list[Arrays]:
    """The feeds in the file's axis order: images as NHWC if it takes them so."""
    network = network_of(part)
    orders = {n: o for n, (_, o) in zip(part.program.inputs, network.inputs, strict=True)}
    return [
        {n: np.array(feed[n].transpose(o), order="C") for n, o in orders.items()} for feed in feeds
    ]


def _laid_back(part: CompiledPart, arrays: Arrays) -> Arrays:
    """Outputs in the model's axis order; one of an unexpected shape stays as it is."""
    if part.target.backend not in OF_TFLITE:
        return arrays
    network, outputs = network_of(part), dict[str, np.ndarray]()
    for name, (index, order) in zip(part.program.outputs, network.outputs, strict=True):
        array = arrays[name]
        is_laid = array.shape == network.draft.tensors[index].shape
        outputs[name] = array.transpose(np.argsort(order)) if is_laid and order else array
    return outputs


def laid_inside(part: CompiledPart) -> Callable[[Arrays], Arrays]:
    """Inner tensors by the program's names and in its axis order, from those of a file."""
    tensors = part.program.tensors
    if part.target.backend == OPENVINO:
        names = _in_openvino(part)
        return lambda inner: {
            **{n: inner[n] for n in part.program.outputs if n in inner},
            **{names[n]: _codes(x, tensors[names[n]]) for n, x in inner.items() if n in names},
        }
    if part.target.backend not in OF_TFLITE:
        return lambda inner: inner
    draft = network_of(part).draft
    places = [
        (draft.tensors[index].name, name, order)
        for index, (name, order) in sorted(draft.file_orders().items())
        if name in tensors
    ]
    return lambda inner: {
        name: _ordered(_codes(inner[label], tensors[name]), tensors[name].shape, order)
        for label, name, order in reversed(places)  # of two tensors with a name, the first
        if label in inner
    }


def _ordered(array: np.ndarray, sizes: Sequence[int], order: Sequence[int]) -> np.ndarray:
    """A tensor of a .tflite in the program's axis order; as it is if its shape is another."""
    if sorted(order) != list(range(len(sizes))):
        return array.reshape(sizes) if array.size == prod(sizes) else array
    if array.shape != tuple(sizes[axis] for axis in order):
        return array
    return array.transpose(np.argsort(order)) if order else array


def _codes(real: np.ndarray, grid: Tensor) -> np.ndarray:
    """The codes of a dequantized tensor; the real numbers if they do not lie on the grid."""
    if grid.scale is None or real.dtype.kind != "f":
        return real
    codes = real.astype(np.float64) / float(np.float32(grid.scale)) + grid.zero_point
    whole, limits = np.rint(codes), np.iinfo(grid.dtype)
    is_on_grid = np.abs(codes - whole) <= OFF_GRID
    is_within = (whole >= limits.min) & (whole <= limits.max)
    return whole.astype(grid.dtype) if (is_on_grid & is_within).all() else real


def _is_installed(distribution: str) -> bool:
    try:
        version(distribution)
    except PackageNotFoundError:
        return False
    return True


RUNTIMES: Mapping[str, Runtime] = {
    "hybrid": Runtime("npumake's runtime", "", _bundle),
    "iree": Runtime("IREE", "iree-base-runtime", _vmfb),
    "onnx": Runtime("onnxruntime", "", _onnx, fuses=True),
    "openvino": Runtime("OpenVINO", "", _openvino, fuses=True),
    "tflite": Runtime("LiteRT", "ai-edge-litert", _tflite),
    "vela": Runtime("LiteRT", "ai-edge-litert", _before_vela, "Vela's input, the .tflite"),
}
