"""A program as a .tflite: int8 from end to end, float only where the program leaves the chip.

An input that is only ever quantized is fed as codes, and an output that is dequantized last of all
is given as codes: their grids are those of the tensors. Images are fed NHWC unless the program
transposes them first, and given as they lie.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import NamedTuple

from pipeline.bundle.program import Instruction, Program
from pipeline.compilers.draft import NHWC, Draft, Order, plain
from pipeline.compilers.flatfile import written
from pipeline.compilers.floats import draw_float
from pipeline.compilers.lifted import lifted
from pipeline.compilers.operators import OPERATORS
from pipeline.compilers.parted import parted
from pipeline.compilers.recurrent import written_out
from pipeline.errors import GraphError
from pipeline.graph import Graph, attribute


class Drawing(NamedTuple):
    """A program as tensors and operators of a file. `inputs` and `outputs` are tensors by number,
    with the order in which the axes of the model's own lie there."""

    draft: Draft
    inputs: list[tuple[int, Order]]
    outputs: list[tuple[int, Order]]


def tflite_file(program: Program, graph: Graph) -> bytes:
    """The file of a `program` that was lowered from `graph` with the rounding `twice`.

    Raises GraphError for all that TensorFlow Lite cannot hold.
    """
    return file_of(drawing(program, graph))


def file_of(drawn: Drawing) -> bytes:
    fed, given = ([index for index, _ in border] for border in (drawn.inputs, drawn.outputs))
    return written(drawn.draft.tensors, drawn.draft.operators, fed, given)


def drawing(program: Program, graph: Graph) -> Drawing:
    """What `tflite_file` writes. Raises GraphError as it does."""
    program, nodes = written_out(program, graph)
    program = lifted(parted(program))
    draft = Draft(program, nodes)
    borders = [_fed(draft, name) for name in program.inputs]
    known = {step.name for border in borders for step in border.steps}
    refusals: list[GraphError] = []
    shown: dict[str, str] = {}  # output → the tensor of codes it shows
    for step in program.instructions:
        if step.op == "dequantize" and step.outputs[0] in program.outputs:
            shown[step.outputs[0]] = step.inputs[0]
        nobody_reads = step.op == "dequantize" and not _readers(program, step.outputs[0])
        if not nobody_reads and step.name not in known:
            refusals += _drawn(draft, step)
    if refusals:
        raise _all_of(refusals)
    inputs = [(border.tensor, border.order) for border in borders]
    outputs: list[tuple[int, Order]] = []
    for name in program.outputs:
        others = [index for index, _ in (outputs if name in program.inputs else inputs + outputs)]
        outputs.append(_given(draft, name, shown.get(name, name), others))
    return Drawing(draft, inputs, outputs)


def _drawn(draft: Draft, step: Instruction) -> list[GraphError]:
    """Draws the instruction; where it cannot be, what would read it finds something all the
    same, so that every refusal is told at once."""
    try:
        OPERATORS.get(step.op, draw_float)(draft, step)
    except GraphError as error:
        for name in step.outputs:
            draft.make(name, plain(len(draft.grid(name).shape)))
        return [error]
    return []


def _all_of(refusals: Sequence[GraphError]) -> GraphError:
    """One error: each node in a line, each hint once."""
    first, *others = refusals
    if not others:
        return first
    lines = [error.what for error in refusals]
    hints = dict.fromkeys(error.hint for error in refusals if error.hint)
    what = "\n  ".join([f"{len(lines)} nodes cannot be in a .tflite:", *lines])
    return GraphError(what, None, "\n".join(hints))


class _Border(NamedTuple):
    """An input of the file, how its axes lie, and the instructions that it makes unnecessary."""

    tensor: int
    order: Order
    steps: list[Instruction]


def _fed(draft: Draft, name: str) -> _Border:
    """Codes, where all that reads the input is a quantizer, perhaps behind a Transpose."""
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
        perms.append(list(attribute(node, "perm")))
    rank = len(draft.grid(name).shape)
    if not steps or steps[-1].op != "quantize":
        return _Border(draft.make(name, plain(rank), called=name), plain(rank), [])
    fed = order = NHWC if rank == 4 and not _is_transposed(draft, last, perms) else plain(rank)
    for perm in perms:
        order = tuple(perm.index(axis) for axis in order)
    return _Border(draft.make(last, order, called=name), fed, steps)


def _is_transposed(draft: Draft, codes: str, perms: Sequence[object]) -> bool:
    return bool(perms) or any(r.op == "transpose" for r in _readers(draft.program, codes))


def _readers(program: Program, name: str) -> list[Instruction]:
    return [step for step in program.instructions if name in step.inputs]


def _given(draft: Draft, output: str, name: str, others: Collection[int]) -> tuple[int, Order]:
    """The tensor of the file an output is, called after it: NHWC or as the program has it. One that
    is among the `others` has a name already, and is copied."""
    rank, order = len(draft.grid(name).shape), draft.order(name)
    order = order if order in (plain(rank), NHWC) else plain(rank)
    index = draft.read(name, order)
    if index in others:
        copy = draft.hidden(name, order, output)
        draft.reshape(index, copy)
        return copy, order
    draft.tensors[index] = replace(draft.tensors[index], name=output)
    return index, order
