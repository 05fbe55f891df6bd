"""Changes one thing behind the compiler; the check must fail and name the node.

    NPUMAKE_SHARED=../shared python benchmarks/sabotage.py [--draws 60] [--seed 0]
        [--targets tflite onnx openvino-cpu iree-cpu]

The file is compiled from a quantized graph in which one thing differs, and checked as the file of
the right one:

    weight          one code of a weight, by 64       bias        one bias, by a tenth
    weight scale    that of one channel, by a tenth   scale       that of a tensor, by a tenth
    zero point      that of a tensor, by one          activation  a Relu or a Clip is lost
    transposed      an output lies the other way

A draw that changes no real number of any tensor, on the samples of the check, is drawn again: a
Relu in front of a grid that begins at 0, say. A change of a weight always counts. `--right` checks
as many untouched files instead, with other samples each.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import numpy as np

from npumake.bundle.program import Program
from npumake.compilers.backends import built
from npumake.debug.compared_models import real_numbers
from npumake.debug.compiled_file.check import NamedSample, check_file
from npumake.debug.compiled_file.runs import CompiledPart
from npumake.engine.exact import ExactSession
from npumake.engine.lower import lowered
from npumake.errors import PipelineError, StageError
from npumake.frontends import read_model
from npumake.graph import Graph, Node, Value, array, producer, shape, upgraded
from npumake.graph.qdq import is_dequantize
from npumake.passes import optimized
from npumake.project.sections import Calibration
from npumake.quant.calibration.observe import observe
from npumake.quant.qdq.insert import DEFAULT
from npumake.quant.search.methods import calibrated_with, ranges_by_method
from npumake.stages.quantized import quantized
from npumake.targets.reader import read_target

SHARED = Path(os.environ.get("NPUMAKE_SHARED", Path(__file__).parents[2] / "shared")) / "data"
MODELS = (
    "classification/cifar10_resnet8_float.tflite",
    "audio/kws_tiny_float.tflite",
    "classification/mnist_cntk.onnx",
    "classification/vww_96_float.tflite",
)
TARGETS = ("tflite", "onnx", "openvino-cpu", "iree-cpu")
CLAMPS = ("Relu", "Clip", "LeakyRelu")
SAMPLES, TRIES = 8, 50
Change = Callable[[Graph, random.Random], str]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--targets", nargs="+", default=TARGETS)
    parser.add_argument("--right", action="store_true")
    options = parser.parse_args()
    os.environ.setdefault("NPUMAKE_OPENVINO_PYTHON", sys.executable)
    draw, count = random.Random(options.seed), 0
    for number in range(options.draws):
        target = options.targets[number % len(options.targets)]
        model = MODELS[number // len(options.targets) % len(MODELS)]
        verdict = _right(model, target, number) if options.right else _wrong(model, target, draw)
        count += verdict.startswith("+")
        print(f"{verdict}  {target} {Path(model).stem}", flush=True)
    print(f"{count} of {options.draws} as they should be")


def _right(model: str, target: str, seed: int) -> str:
    graph, part = compiled_part(model, target)
    said = refusal(graph, part, seed)
    return f"- {said}" if said else "+ passes"


def _wrong(model: str, target: str, draw: random.Random) -> str:
    graph, part = compiled_part(model, target)
    seed = draw.randrange(1 << 16)
    samples = noise(graph, seed)
    for _ in range(TRIES):
        kind, node, data, program = changed_file(part, draw)
        if data != part.data and (kind == "weight" or differs(part.program, program, samples)):
            break
    said = refusal(graph, part._replace(data=data), seed)
    names = [node, *_near(part.graph, node)]
    named = any(f"`{name}`" in said for name in names)
    return f"{'+' if named else '-'} {kind} of {node}: {said[:160] or 'passes'}"


def _near(graph: Graph, name: str) -> set[str]:
    """The nodes that a changed constant or grid belongs to: around its Q and DQ."""
    tensors, nodes = {name}, set[str]()
    for _ in range(4):
        for node in graph.nodes():
            around = {str(value.name) for value in (*node.inputs, *node.outputs) if value}
            if around & tensors:
                nodes.add(str(node.name))
        tensors |= {
            str(value.name)
            for node in graph.nodes("QuantizeLinear", "DequantizeLinear", *CLAMPS)
            if str(node.name) in nodes
            for value in (*node.inputs[:1], *node.outputs)
            if value
        }
    return nodes


def differs(program: Program, other: Program, samples: Sequence[NamedSample]) -> bool:
    """Whether some tensor of the programs is another real number for one of the samples."""
    names = [n for step in program.instructions for n in step.outputs if n in other.tensors]
    engines = [ExactSession(p, watched=names) for p in (program, other)]
    for sample in samples:
        results = [engine.run(names, sample.feed) for engine in engines]
        for name, a, b in zip(names, *results, strict=True):
            x, y = (real_numbers(v, p.tensors[name]) for v, p in ((a, program), (b, other)))
            scale = program.tensors[name].scale or 0.0
            if x.shape != y.shape or (np.abs(x - y) > scale / 2).any():
                return True
    return False


@cache
def compiled_part(model: str, chip: str) -> tuple[Graph, CompiledPart]:
    """`optimized_float` of a model, and its file for a target, calibrated with `max` on noise."""
    target = read_target(chip)
    file = SHARED / "models" / model
    graph = optimized(upgraded(read_model(file.read_bytes(), file.name)).with_shapes())
    measured = observe(graph, [sample.feed for sample in noise(graph, 0)])
    recipe = ranges_by_method(graph, measured, Calibration("max"), target.activations.symmetric)
    whole = quantized(calibrated_with(graph, recipe, target, DEFAULT), target)
    program = lowered(whole, target.rounding, target.runnable)
    return graph, CompiledPart(whole, program, target, built(program, whole, target, {}))


def noise(graph: Graph, seed: int) -> list[NamedSample]:
    draw = np.random.default_rng(seed)
    return [
        NamedSample(
            f"noise {index}",
            {str(v.name): draw.normal(size=shape(v)).astype(np.float32) for v in graph.inputs},
        )
        for index in range(SAMPLES)
    ]


def refusal(graph: Graph, part: CompiledPart, seed: int) -> str:
    """What the check says of the file; empty if it passes."""
    try:
        check_file(graph, part, noise(graph, seed))
    except StageError as error:
        return error.what
    return ""


def changed_file(part: CompiledPart, draw: random.Random) -> tuple[str, str, bytes, Program]:
    """A kind, the changed tensor, and file and program of the changed graph."""
    while True:
        graph, kind = part.graph.copy(), draw.choice([*CHANGES])
        try:
            name = CHANGES[kind](graph, draw)
            program = lowered(graph, part.target.rounding, part.target.runnable)
            return kind, name, built(program, graph, part.target, {}), program
        except (IndexError, PipelineError):  # nothing of the kind, or no file of it
            continue


# -- changes -------------------------------------------------------------------------------


def _constants(graph: Graph) -> list[tuple[Node, Value, np.ndarray]]:
    """Each DQ of a constant, the constant and its integers."""
    return [
        (node, value, values)
        for node in graph.nodes("DequantizeLinear")
        if (value := node.inputs[0]) is not None and (values := array(value)) is not None
    ]


def _set(graph: Graph, node: Node, at: int, values: np.ndarray) -> None:
    node.replace_input_with(at, graph.constant("changed", values))


def _changed_at(
    values: np.ndarray, draw: random.Random, change: Callable[[float], float]
) -> np.ndarray:
    other = np.array(values)
    place = draw.randrange(other.size)
    other.reshape(-1)[place] = np.asarray(change(other.reshape(-1)[place])).astype(other.dtype)
    return other


def _weight(graph: Graph, draw: random.Random) -> str:
    weights = [c for c in _constants(graph) if c[2].dtype.itemsize == 1 and c[2].size > 1]
    node, _, values = draw.choice(weights)
    _set(graph, node, 0, _changed_at(values, draw, lambda code: int(code) ^ 0x40))
    return str(node.outputs[0].name)


def _bias(graph: Graph, draw: random.Random) -> str:
    node, _, values = draw.choice([c for c in _constants(graph) if c[2].dtype == np.int32])
    step = max(64, int(np.abs(values).max()) // 10)
    _set(graph, node, 0, _changed_at(values, draw, lambda code: code + step))
    return str(node.outputs[0].name)


def _weight_scale(graph: Graph, draw: random.Random) -> str:
    node, _, _ = draw.choice([c for c in _constants(graph) if c[2].dtype.itemsize == 1])
    scale = array(node.inputs[1])
    assert scale is not None
    _set(graph, node, 1, _changed_at(scale, draw, lambda value: value * 1.1))
    return str(node.outputs[0].name)


def _grid(
    graph: Graph, draw: random.Random, at: int, change: Callable[[np.ndarray], np.ndarray]
) -> str:
    """Changes the grid of one tensor, in its Q and in every DQ."""
    quantizer = draw.choice(graph.nodes("QuantizeLinear"))
    codes = quantizer.outputs[0]
    for node in (quantizer, *(use.node for use in codes.uses() if is_dequantize(use.node))):
        values = array(node.inputs[at])
        assert values is not None
        _set(graph, node, at, change(values).astype(values.dtype))
    return str(codes.name)


def _scale(graph: Graph, draw: random.Random) -> str:
    return _grid(graph, draw, 1, lambda scale: scale * 1.1)


def _zero_point(graph: Graph, draw: random.Random) -> str:
    return _grid(graph, draw, 2, lambda zero: np.where(zero < 100, zero + 1, zero - 1))


def _activation(graph: Graph, draw: random.Random) -> str:
    node = draw.choice(graph.nodes(*CLAMPS))
    graph.become(node, "Identity", [node.inputs[0]])
    return str(node.outputs[0].name)


def _transposed(graph: Graph, draw: random.Random) -> str:
    output = draw.choice(list(graph.outputs))
    size, name = shape(output)[-1], str(output.name)
    if size < 2:
        raise IndexError
    places = graph.constant("places", np.arange(size)[::-1].astype(np.int64))
    other = graph.insert("Gather", [output, places], f"{name}_other_way", producer(output), axis=-1)
    graph.replace_output(output, other)
    return name


CHANGES: dict[str, Change] = {
    "activation": _activation,
    "bias": _bias,
    "scale": _scale,
    "transposed": _transposed,
    "weight": _weight,
    "weight scale": _weight_scale,
    "zero point": _zero_point,
}


if __name__ == "__main__":
    main()
