"""The first node of a compiled file that differs from the integer engine.

inside    compares the inner tensors of the file, if its runtime exposes them: LiteRT, onnxruntime
          and our own
cutting   else ends the graph at a node, compiles and runs it: bisection over the nodes that the
          output depends on, then over the producers of the node's inputs

The first also finds changes of a file after compilation; the second finds compiler errors and nodes
that crash the runtime.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from npumake.bundle.archive import Bundle
from npumake.bundle.program import Instruction, Program
from npumake.compilers.backends import built
from npumake.compilers.tflite import drawing
from npumake.custom.operators import Operators
from npumake.debug.file_runs import CompiledPart, job_of, model_outputs
from npumake.debug.tensor_agreement import output_grid, tensor_agreement
from npumake.engine.exact import ExactSession
from npumake.engine.fusion import result
from npumake.engine.lower import lowered
from npumake.engine.ort import Feeds
from npumake.engine.reference import ReferenceSession
from npumake.errors import PipelineError
from npumake.graph import Graph, Node, Value, is_float, origin, parse, producer, reads
from npumake.graph.qdq import first_dequantizer, first_quantizer, is_qdq
from npumake.runtime.isolated import Isolated, RunError

Arrays = Mapping[str, np.ndarray]
MAX_CUTS = 24  # files compiled to find one node


class Fault(NamedTuple):
    """`node` computes `op_type` for the nodes `origin` of the trained model; `error` says how far
    its tensor is off, or how the process ended."""

    node: str
    op_type: str
    origin: tuple[str, ...]
    error: str

    def __str__(self) -> str:
        trained = ", ".join(name for name in self.origin if name != self.node)
        named = f" ({trained} in the trained model)" if trained else ""
        return f"`{self.node}` ({self.op_type}){named}: {self.error}"


def first_node(
    part: CompiledPart, feed: Feeds, output: str | None, operators: Operators
) -> Fault | None:
    """The first node that differs for `feed`; None if none is found. `output` is a differing
    output, None if the process ended instead."""
    inner = None if output is None else _inside(part, feed)
    if inner is not None and output is not None:
        return _first_inside(part, feed, output, inner, operators)
    return _Cutting(part, feed, operators).first(output)


def first_infinite(program: Program, feed: Feeds, operators: Operators) -> str:
    """A phrase that names the first node of the program producing NaN or infinity."""
    values = _exact(program, feed, operators)
    for step in program.instructions:
        outputs = (values[name] for name in step.outputs)
        if any(x.dtype.kind == "f" and not np.isfinite(x).all() for x in outputs):
            return f"the first node to produce them is `{step.name}`"
    return "no inner node produces them"


# -- inside ----------------------------------------------------------------------------------


def _inside(part: CompiledPart, feed: Feeds) -> Arrays | None:
    """The inner tensors of the file, by the program's names and in its axis order."""
    if part.target.backend not in INSIDE:
        return None
    try:
        return INSIDE[part.target.backend](part, feed)
    except (RunError, PipelineError):
        return None


def _of_tflite(part: CompiledPart, feed: Feeds) -> Arrays:
    draft = drawing(part.program, part.graph).draft
    (tensors,) = _run(part, feed, every=True)
    arrays = {}
    for index, (name, order) in sorted(draft.file_orders().items()):
        array, shape = tensors.get(str(index)), draft.grid(name).shape
        if name in arrays or array is None or name not in part.program.tensors:
            continue
        is_laid = array.shape == tuple(shape[axis] for axis in order)
        ordered = array.transpose(np.argsort(order)) if is_laid and order else array
        arrays[name] = ordered.reshape(part.program.tensors[name].shape) if is_laid else ordered
    return arrays


def _of_bundle(part: CompiledPart, feed: Feeds) -> Arrays:
    return next(_run(part, feed, every=True))


def _of_onnx(part: CompiledPart, feed: Feeds) -> Arrays:
    graph = parse(part.data, part.target.name)
    values = graph.values()
    names = [n for n in part.program.tensors if n in values and producer(values[n]) is not None]
    for name in names:
        graph.set_type(values[name], part.program.tensors[name].dtype)
    graph.expose(names)
    return next(_run(part._replace(data=graph.to_bytes()), feed))


INSIDE = {"hybrid": _of_bundle, "onnx": _of_onnx, "tflite": _of_tflite, "vela": _of_tflite}


def _run(part: CompiledPart, feed: Feeds, every: bool = False) -> Iterator[Arrays]:
    with Isolated(job_of(part, [feed], every)) as process:
        yield from process.outputs()


def _first_inside(
    part: CompiledPart, feed: Feeds, output: str, inner: Arrays, operators: Operators
) -> Fault:
    program, expected = part.program, _exact(part.program, feed, operators)
    nodes = {str(node.name): node for node in part.graph.nodes()}
    for step in program.instructions:
        for name in step.outputs:
            if name not in inner:
                continue
            agreement = tensor_agreement(expected[name], inner[name], program.tensors[name])
            if not agreement.within(part.target.compiled_bound):
                return _fault(step, nodes, f"its result is off by {agreement}")
    maker = _maker(program, output)
    return _fault(maker, nodes, "its inputs are right, its output is not")


def _maker(program: Program, name: str) -> Instruction:
    """The step that computes a tensor, looking through quantize and dequantize."""
    makers = {output: step for step in program.instructions for output in step.outputs}
    step = makers[name]
    while step.op in ("dequantize", "quantize") and step.inputs[0] in makers:
        step = makers[step.inputs[0]]
    return step


def _fault(step: Instruction, nodes: Mapping[str, Node], error: str) -> Fault:
    node = nodes.get(step.name)
    kind = step.op if node is None else node.op_type
    return Fault(step.name, kind, step.origin or (() if node is None else origin(node)), error)


def _exact(program: Program, feed: Feeds, operators: Operators) -> Arrays:
    """Every tensor of the program."""
    names = [name for step in program.instructions for name in step.outputs]
    arrays = ReferenceSession(program, operators).run(names, feed)
    return dict(zip(names, arrays, strict=True))


# -- cutting ---------------------------------------------------------------------------------


@dataclass
class _Cutting:
    part: CompiledPart
    feed: Feeds
    operators: Operators
    cuts: int = 0

    def first(self, output: str | None) -> Fault | None:
        """The first wrong node; None if no shortened file is wrong."""
        graph = self.part.graph
        ends = [v for v in graph.outputs if output is None or str(v.name) == output]
        nodes = [node for node in _before(ends) if _is_end(node)]
        errors: dict[Node, str] = {}

        def wrong(node: Node) -> str:
            if node not in errors:
                errors[node] = self._error_at(node)
            return errors[node]

        low, high = -1, len(nodes) - 1
        if not nodes or not wrong(nodes[high]):
            return None
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if wrong(nodes[middle]) else (middle, high)
        first_wrong = nodes[high]
        while earlier := next((n for n in _makers(first_wrong, nodes) if wrong(n)), None):
            first_wrong = earlier
        return Fault(
            str(first_wrong.name), first_wrong.op_type, origin(first_wrong), errors[first_wrong]
        )

    def _error_at(self, node: Node) -> str:
        """The fault of a file that ends at the node; empty without one, if it does not compile, or
        after MAX_CUTS files."""
        if self.cuts >= MAX_CUTS:
            return ""
        self.cuts += 1
        try:
            return self._error_of(_ended_at(self.part.graph, node))
        except RunError as error:
            return f"a file that ends there {error.what}"
        except PipelineError:
            return ""

    def _error_of(self, graph: Graph) -> str:
        target = self.part.target
        program = lowered(graph, target.rounding, target.runnable)
        data = _compiled(graph, program, self.part)
        part = self.part._replace(graph=graph, program=program, data=data)
        feed = {name: self.feed[name] for name in program.inputs}
        (expected,) = ExactSession(program, self.operators).run(None, feed)
        (actual,) = model_outputs(part, _run(part, feed))
        name = program.outputs[0]
        agreement = tensor_agreement(expected, actual[name], output_grid(program, name))
        if agreement.within(target.compiled_bound):
            return ""
        return f"a file that ends there is off by {agreement}"


def _compiled(graph: Graph, program: Program, part: CompiledPart) -> bytes:
    if part.target.backend == "hybrid":
        return Bundle(part.target.name, program, {}).to_bytes()
    if part.target.backend == "vela":
        return b""  # the .tflite before Vela is run instead
    return built(program, graph, part.target, {})


def _before(ends: list[Value]) -> list[Node]:
    """The nodes that these values depend on, in graph order."""
    nodes: dict[Node, None] = {}
    waiting = [maker for value in ends if (maker := producer(value)) is not None]
    while waiting:
        node = waiting.pop()
        if node not in nodes:
            nodes[node] = None
            waiting += [m for value in reads(node) if (m := producer(value)) is not None]
    owner = next((node.graph for node in nodes), None)
    return [] if owner is None else [node for node in owner if node in nodes]


def _is_end(node: Node) -> bool:
    return not is_qdq(node) and is_float(result(node))


def _makers(node: Node, nodes: list[Node]) -> list[Node]:
    """The nearest of `nodes` that the node depends on."""
    makers: list[Node] = []
    waiting = [m for value in reads(node) if (m := producer(value)) is not None]
    while waiting:
        maker = waiting.pop()
        if maker in nodes:
            makers.append(maker)
        else:
            waiting += [m for value in reads(maker) if (m := producer(value)) is not None]
    return makers


def _ended_at(graph: Graph, node: Node) -> Graph:
    """The graph cut behind the node, and behind its Q/DQ if it has any."""
    value = result(node)
    for reader_of in (first_quantizer, first_dequantizer):
        reader = reader_of(value)
        value = value if reader is None else reader.outputs[0]
    copy = graph.copy()
    copy.expose([str(value.name)])
    copy.drop_unused()
    for unread in [graph_input for graph_input in copy.inputs if not graph_input.uses()]:
        copy.drop_input(unread)
    return copy
