"""The first node that ends the process of a compiled file.

The graph is cut behind a node, compiled and run: bisection over the nodes in order, then over the
producers of the node's inputs.
"""

from __future__ import annotations

from dataclasses import dataclass

from npumake.bundle.archive import Bundle
from npumake.bundle.program import Program
from npumake.compilers.backends import built
from npumake.debug.compiled_file.fault import Fault
from npumake.debug.compiled_file.runs import CompiledPart, job_of
from npumake.engine.fusion import result
from npumake.engine.lower import lowered
from npumake.engine.ort import Feeds
from npumake.errors import PipelineError
from npumake.graph import Graph, Node, Value, is_float, origin, producer, reads
from npumake.graph.qdq import first_dequantizer, first_quantizer, is_qdq
from npumake.runtime.isolated import Isolated, RunError

MAX_CUTS = 24  # files compiled to find one node


def first_ending(part: CompiledPart, feed: Feeds) -> Fault | None:
    """The first node whose file ends its process for `feed`; None if none is found."""
    return _Cutting(part, feed).first()


@dataclass
class _Cutting:
    part: CompiledPart
    feed: Feeds
    cuts: int = 0

    def first(self) -> Fault | None:
        """The first wrong node; None if no shortened file is wrong."""
        nodes = [node for node in _before(list(self.part.graph.outputs)) if _is_end(node)]
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
            self._run(_ended_at(self.part.graph, node))
        except RunError as error:
            return f"a file that ends there {error.what}"
        except PipelineError:
            return ""
        return ""

    def _run(self, graph: Graph) -> None:
        target = self.part.target
        program = lowered(graph, target.rounding, target.runnable)
        data = _compiled(graph, program, self.part)
        part = self.part._replace(graph=graph, program=program, data=data)
        feed = {name: self.feed[name] for name in program.inputs}
        with Isolated(job_of(part, [feed])) as process:
            list(process.runs())


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
