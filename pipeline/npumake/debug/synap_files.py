"""model_info.txt as SyNAP's converter writes it beside a model: input and output tensors,
subgraphs, layers, operations, memory. A layer has the name of its node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from npumake.bundle.archive import Bundle
from npumake.bundle.program import Tensor
from npumake.debug.compared import Comparison, NodeRow
from npumake.debug.synap_grids import FIXED, fraction, scheme_of, yaml_of
from npumake.digest import Json
from npumake.engine.fusion import absorbed
from npumake.errors import Route
from npumake.graph import Graph, GraphNames, Node
from npumake.quant.precision.placement import subgraphs
from npumake.quant.precision.selectors import select_nodes
from npumake.targets.target import Target

RULE = "=" * 100
CPU, GPU, NPU = "cpu", "gpu", "npu"


@dataclass(frozen=True)
class Delegates:
    """Node of the float model -> its delegate, and -> the number of its subgraph."""

    delegate: Mapping[str, str]
    number: Mapping[str, int]

    def names(self) -> list[tuple[str, int]]:
        """The subgraphs, in order of their first layers."""
        return list(dict.fromkeys((self.delegate[name], self.number[name]) for name in self.number))


def delegates(graph: Graph, comparison: Comparison, rules: Mapping[str, str]) -> Delegates:
    """The delegate of every node. Nodes that the NPU does not run go to the GPU if the metafile's
    `rules` (layer name or `*` -> delegate) say so, else to the CPU."""
    by_rule: dict[Node, str] = {}
    names = GraphNames(graph)
    for name, delegate in sorted(rules.items(), key=lambda rule: rule[0] != "*"):
        by_rule |= dict.fromkeys(select_nodes(names, name, Route("delegate")).nodes, delegate)
    nodes = {str(node.name): node for node in graph.nodes()}
    rows = {row.node: nodes[row.node] for row in comparison.of_graph if row.node in nodes}
    on_unit = {row.node for row in comparison.of_graph if row.subgraph is not None}
    delegate_of = {
        name: NPU if name in on_unit else GPU if by_rule.get(node) == GPU else CPU
        for name, node in rows.items()
    }
    numbers: dict[Node, int] = {}
    for delegate in (CPU, GPU, NPU):
        own = {rows[name] for name, by in delegate_of.items() if by == delegate}
        clamps = {clamp for node in own if (clamp := absorbed(node)) is not None}
        numbers |= subgraphs(graph, own | clamps)
    return Delegates(delegate_of, {name: numbers[node] for name, node in rows.items()})


def model_info(
    version: str,
    bundle: Bundle,
    comparison: Comparison,
    formats: Mapping[str, str],
    target: Target,
    on: Delegates,
) -> str:
    """The text of model_info.txt. `version` is the tool's; `formats` are the format strings of
    inputs and outputs by name; `target` has the project's quantization scheme."""
    program, rows = bundle.program, comparison.of_graph
    parts = on.names()
    alone = [f"delegate: {parts[0][0]}"] if len(parts) == 1 else []
    edge = {
        "Inputs": [_edge(bundle, name, formats, target) for name in program.inputs],
        "Outputs": [_edge(bundle, name, formats, target) for name in program.outputs],
    }
    operations = Counter(row.type for row in rows)
    weights = sum(v.nbytes for step in program.instructions for v in step.constants.values())
    largest = max((_bytes(tensor) for tensor in program.tensors.values()), default=0)
    return "\n".join(
        [
            f"Model converted with {version}",
            *(*alone, f"subgraphs: {len(parts)}"),
            *(RULE, f"Tensors of {bundle.target}:", yaml_of(edge).rstrip()),
            *([RULE, "Subgraph table:", *_parts(on)] if len(parts) > 1 else []),
            *(RULE, "Layer table:", "  lyr | on  | operation                | name"),
            *_layers(rows, on),
            *(RULE, "Operation table:"),
            *(f"{count:5} | {kind}" for kind, count in sorted(operations.items())),
            *(RULE, "Memory usage:"),
            f"weights: {weights} bytes",
            f"largest tensor: {largest} bytes",
            "",
        ]
    )


def _parts(on: Delegates) -> Iterator[str]:
    for index, part in enumerate(on.names()):
        layers = [n for n in on.number if (on.delegate[n], on.number[n]) == part]
        yield f"{index:5} | {part[0]:3} | {', '.join(layers)}"


def _layers(rows: Sequence[NodeRow], on: Delegates) -> Iterator[str]:
    for index, row in enumerate(rows):
        yield f"{index:5} | {on.delegate.get(row.node, CPU):3} | {row.type:24} | {row.node}"


def _edge(bundle: Bundle, name: str, formats: Mapping[str, str], target: Target) -> Json:
    """An input or output in float, with its quantization if it has one."""
    tensors, steps = bundle.program.tensors, bundle.program.instructions
    codes = [s.outputs[0] for s in steps if s.op == "quantize" and s.inputs == (name,)]
    codes += [s.inputs[0] for s in steps if s.op == "dequantize" and s.outputs == (name,)]
    tensor = tensors[codes[0]] if codes else tensors[name]
    document: dict[str, Json] = {"name": name, "shape": list(tensor.shape), "type": tensor.dtype}
    if tensor.scale is not None:
        document["quantization"] = _grid(tensor, float(tensor.scale), target)
    return document | ({"format": formats[name]} if formats.get(name) else {})


def _grid(tensor: Tensor, scale: float, target: Target) -> Json:
    scheme = scheme_of(tensor.dtype, scale, tensor.zero_point, target)
    if scheme == FIXED:
        return {"scheme": scheme, "fractional_length": fraction(scale, 0)}
    return {"scheme": scheme, "scale": scale, "zero_point": int(tensor.zero_point)}


def _bytes(tensor: Tensor) -> int:
    return int(np.prod(tensor.shape)) * np.dtype(tensor.dtype).itemsize
