"""A program as a .tflite: int8 throughout, float only where the program leaves the chip.

An input read only by quantizers is fed as codes, and an output that is dequantized last is returned
as codes; their grids are those of the tensors. Images are NHWC unless the program transposes them
first; outputs keep their layout.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from npumake.bundle.program import Instruction, Program
from npumake.compilers.conv1d_as_conv2d import lifted
from npumake.compilers.flatfile import FlatModel, written
from npumake.compilers.float_decompositions import in_float, written_out
from npumake.compilers.floats import FLOATS, draw_float
from npumake.compilers.operators import OPERATORS
from npumake.compilers.split_transpose_conv import parted
from npumake.compilers.tflite_builder import NHWC, Order, TFLiteBuilder, plain
from npumake.engine.grids import dequantizer
from npumake.engine.lower import lowered
from npumake.engine.tflite_rules import TWICE
from npumake.errors import GraphError
from npumake.graph import Graph, attribute


class TFLiteNetwork(NamedTuple):
    """A program as tensors and operators of a file. `inputs` and `outputs` are tensor indices with
    the order of the model's axes in them."""

    draft: TFLiteBuilder
    inputs: list[tuple[int, Order]]
    outputs: list[tuple[int, Order]]


def tflite_file(program: Program, graph: Graph) -> bytes:
    """The file of a `program` that was lowered from `graph` with the rounding `twice`.

    Raises GraphError as `tflite_model`.
    """
    return written(*tflite_model(program, graph))


def tflite_model(program: Program, graph: Graph) -> FlatModel:
    """The file's content, each operator with its node.

    Raises GraphError for everything that TensorFlow Lite cannot express.
    """
    return _flat(drawing(program, graph))


def file_of(network: TFLiteNetwork) -> bytes:
    """The file of a network that is drawn already."""
    return written(*_flat(network))


def _flat(network: TFLiteNetwork) -> FlatModel:
    inputs, outputs = (
        [index for index, _ in border] for border in (network.inputs, network.outputs)
    )
    return FlatModel(network.draft.tensors, network.draft.operators, inputs, outputs)


def drawing(program: Program, graph: Graph) -> TFLiteNetwork:
    """The network of `tflite_model`. Raises GraphError as it does."""
    program, nodes = written_out(program, graph, FLOATS)
    program = lifted(parted(program))
    draft = TFLiteBuilder(program, nodes)
    borders = [_input_border(draft, name) for name in program.inputs]
    fused = {step.name for border in borders for step in border.steps}
    refusals: dict[str, GraphError] = {}
    code_tensors: dict[str, str] = {}  # output → the tensor of its codes
    for step in program.instructions:
        if step.op == "dequantize" and step.outputs[0] in program.outputs:
            code_tensors[step.outputs[0]] = step.inputs[0]
        nobody_reads = step.op == "dequantize" and not _readers(program, step.outputs[0])
        if not nobody_reads and step.name not in fused:
            refusals |= _refusals(draft, step)
    if refusals:
        raise _all_of(refusals, graph)
    inputs = [(border.tensor, border.order) for border in borders]
    outputs: list[tuple[int, Order]] = []
    for name in program.outputs:
        others = [index for index, _ in (outputs if name in program.inputs else inputs + outputs)]
        outputs.append(_output_border(draft, name, code_tensors.get(name, name), others))
    return TFLiteNetwork(draft, inputs, outputs)


def _refusals(draft: TFLiteBuilder, step: Instruction) -> dict[str, GraphError]:
    """Adds the instruction's operators and returns refusals by node. A refused instruction still
    gets an output tensor, so that all refusals are reported at once."""
    first = len(draft.operators)
    try:
        OPERATORS.get(step.op, draw_float)(draft, step)
        draft.operators[first:] = [replace(o, node=step.name) for o in draft.operators[first:]]
    except GraphError as error:
        for name in step.outputs:
            draft.make(name, plain(len(draft.grid(name).shape)))
        return {step.name: error}
    return {}


def _all_of(refusals: Mapping[str, GraphError], graph: Graph) -> GraphError:
    """One error with a line per node. Its hint was tried before."""
    first, *others = [error.what for error in refusals.values()]
    message = "\n  ".join([f"{len(refusals)} nodes cannot be in a .tflite:", first, *others])
    free = [name for name in refusals if has_float(graph, name)]
    hint = HYBRID if len(free) < len(refusals) else f"leave it to the CPU: {_cpu(free)}"
    return GraphError(message if others else first, None, hint)


HYBRID = "choose a target with a .hybrid, where the CPU runs any operator of ONNX"


def _cpu(names: Sequence[str]) -> str:
    return f"`quantization: {{cpu: [{', '.join(names)}]}}`"


def has_float(graph: Graph, name: str) -> bool:
    """Whether a file can hold the quantized node in float; compiles it to find out."""
    node = next((node for node in graph.find(name) if node.name == name), None)
    if node is None or not any(dequantizer(value) for value in node.inputs):
        return False
    alone = in_float(graph, node)
    try:
        tflite_file(lowered(alone, TWICE), alone)
    except GraphError:
        return False
    return True


class _Border(NamedTuple):
    """An input of the file, its axis order, and the instructions that it replaces."""

    tensor: int
    order: Order
    steps: list[Instruction]


def _input_border(draft: TFLiteBuilder, name: str) -> _Border:
    """Codes if only a quantizer reads the input, perhaps behind a Transpose."""
    steps, last, outputs = [], name, draft.program.outputs
    perms = []
    while last not in outputs and len(readers := _readers(draft.program, last)) == 1:
        (reader,) = readers
        node = draft.nodes[reader.name]
        if reader.op != "quantize" and (reader.op != "onnx" or node.op_type != "Transpose"):
            break
        steps.append(reader)
        last = reader.outputs[0]
        if reader.op == "quantize":
            break
        perms.append(
            list(attribute(node, "perm", (*reversed(range(len(draft.grid(name).shape))),)))
        )
    rank = len(draft.grid(name).shape)
    if not steps or steps[-1].op != "quantize":
        return _Border(draft.make(name, plain(rank), called=name), plain(rank), [])
    input_order = order = (
        NHWC if rank == 4 and not _is_transposed(draft, last, perms) else plain(rank)
    )
    for perm in perms:
        order = tuple(perm.index(axis) for axis in order)
    return _Border(draft.make(last, order, called=name), input_order, steps)


def _is_transposed(draft: TFLiteBuilder, codes: str, perms: Sequence[object]) -> bool:
    return bool(perms) or any(r.op == "transpose" for r in _readers(draft.program, codes))


def _readers(program: Program, name: str) -> list[Instruction]:
    return [step for step in program.instructions if name in step.inputs]


def _output_border(
    draft: TFLiteBuilder, output: str, name: str, others: Collection[int]
) -> tuple[int, Order]:
    """The file's tensor for an output, with its name: NHWC, or as in the program. A tensor among
    the `others` already has a name and is copied."""
    rank, order = len(draft.grid(name).shape), draft.order(name)
    order = order if order in (plain(rank), NHWC) else plain(rank)
    index = draft.read(name, order)
    if index in others:
        copy = draft.hidden(name, order, output)
        draft.reshape(index, copy)
        return copy, order
    for at, tensor in enumerate(draft.tensors):  # a transposed copy may have its name
        if tensor.name == output and at != index:
            draft.tensors[at] = replace(tensor, name=f"{output}_inside")
    draft.tensors[index] = replace(draft.tensors[index], name=output)
    return index, order
