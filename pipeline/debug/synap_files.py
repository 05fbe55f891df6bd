"""The files that SyNAP's converter leaves beside a model, in its words.

    model_info.txt              tensors at the edge, subgraphs, layers, operations, memory
    quantization_info.yaml      the grid of every tensor:      '@<layer>:<out0|weight|bias>'
    quantization_entropy.txt    how much each grid loses, ascending, activations first

A layer is called by the name of its node. The vendor's entropy is that of the Kullback-Leibler
divergence it minimises; here it is 1 - cosine of the tensor before and after, held in 0..1: 0 is
good, 1 is bad, and the order of the layers is what both are read for.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import yaml

from pipeline.bundle.archive import Bundle
from pipeline.bundle.program import Tensor
from pipeline.debug.compared import Comparison
from pipeline.digest import Json
from pipeline.engine.fusion import absorbed, result
from pipeline.engine.grids import DQ, Q
from pipeline.graph import Graph, Node, Value, array, attribute, producer
from pipeline.kernels.measure import cosine
from pipeline.quant.precision.grids import Grid, on_grid

RULE = "=" * 100
QTYPES = {"uint8": "u8", "int8": "i8", "int16": "i16", "int32": "i32"}
FIXED = "dynamic_fixed_point"
ROLES = {1: "weight", 2: "bias"}  # by the index of a node's input


class Held(NamedTuple):
    """What a grid holds: `values` where they are constants."""

    layer: str
    role: str
    scale: np.ndarray
    zero_point: np.ndarray
    axis: int  # of the channels, where there is a scale for each
    values: np.ndarray | None = None


def model_info(
    version: str, bundle: Bundle, comparison: Comparison, formats: Mapping[str, str]
) -> str:
    """model_info.txt. `version` is that of what made the model, `formats` are the format strings
    of its inputs and outputs by name."""
    program, rows = bundle.program, comparison.rows
    parts = {row.subgraph for row in rows}
    on_cpu = [row for row in rows if row.subgraph is None]
    facts = {"subgraphs": len(parts)} if on_cpu else {"delegate": "npu", "subgraphs": 1}
    edge = {
        "Inputs": [_edge(bundle, name, formats) for name in program.inputs],
        "Outputs": [_edge(bundle, name, formats) for name in program.outputs],
    }
    layers = [
        f"{index:5} | {'cpu' if row.subgraph is None else 'npu':3} | {row.type:24} | {row.node}"
        for index, row in enumerate(rows)
    ]
    operations = Counter(row.type for row in rows)
    weights = sum(v.nbytes for step in program.instructions for v in step.constants.values())
    largest = max((_bytes(tensor) for tensor in program.tensors.values()), default=0)
    return "\n".join(
        [
            f"Model converted with {version}",
            *(f"{key}: {value}" for key, value in facts.items()),
            *(RULE, f"Tensors of {bundle.target}:", _yaml(edge).rstrip()),
            *(RULE, "Layer table:", "  lyr | on  | operation                | name", *layers),
            *(RULE, "Operation table:"),
            *(f"{count:5} | {kind}" for kind, count in sorted(operations.items())),
            *(RULE, "Memory usage:"),
            f"weights: {weights} bytes",
            f"largest tensor: {largest} bytes",
            "",
        ]
    )


def quantization_info(calibrated: Graph) -> str:
    """quantization_info.yaml of a graph in Q/DQ form; empty where nothing is on a grid."""
    found = {f"@{held.layer}:{held.role}": _entry(held) for held in _grids(calibrated)}
    return _yaml(found) if found else ""


def quantization_entropy(calibrated: Graph, comparison: Comparison) -> str:
    """quantization_entropy.txt: activations by their comparison, weights by their own grids."""
    activations = {
        f"@{row.node}:out0": row.cosine for row in comparison.rows if row.subgraph is not None
    }
    weights = {
        f"@{held.layer}:weight": _cosine(held, held.values)
        for held in _grids(calibrated)
        if held.role == "weight" and held.values is not None
    }
    return "".join(
        f"{name}, {loss:.6f}\n"
        for cosines in (activations, weights)
        for loss, name in sorted((_lost(c), n) for n, c in cosines.items())
    )


def _yaml(data: Json) -> str:
    return str(yaml.safe_dump(data, sort_keys=False, default_flow_style=None, width=100))


def _edge(bundle: Bundle, name: str, formats: Mapping[str, str]) -> Json:
    """What goes in or out is real numbers; behind it there may be a grid."""
    tensors, steps = bundle.program.tensors, bundle.program.instructions
    codes = [s.outputs[0] for s in steps if s.op == "quantize" and s.inputs == (name,)]
    codes += [s.inputs[0] for s in steps if s.op == "dequantize" and s.outputs == (name,)]
    found = tensors[codes[0]] if codes else tensors[name]
    document: dict[str, Json] = {"name": name, "shape": list(found.shape), "type": found.dtype}
    if found.scale is not None:
        grid = {"scale": float(found.scale), "zero_point": int(found.zero_point)}
        document["quantization"] = {"scheme": "asymmetric_affine", **grid}
    return document | ({"format": formats[name]} if formats.get(name) else {})


def _bytes(tensor: Tensor) -> int:
    return int(np.prod(tensor.shape)) * np.dtype(tensor.dtype).itemsize


def _grids(graph: Graph) -> Iterator[Held]:
    """Every grid of the graph: of its inputs, and node by node of what it makes and holds."""
    for value in graph.inputs:
        yield from _quantized(str(value.name), value)
    clamps = {absorbed(node) for node in graph.nodes()}
    for node in graph.nodes():
        if node.op_type in (Q, DQ) or node in clamps:
            continue
        yield from _quantized(str(node.name), result(node))
        for index, role in ROLES.items():
            held = node.inputs[index] if index < len(node.inputs) else None
            if held is not None:
                yield from _constant(str(node.name), role, held)


def _quantized(layer: str, value: Value) -> Iterator[Held]:
    for use in value.uses():
        if use.node.op_type == Q and (held := _held(layer, "out0", use.node)):
            yield held
            return


def _constant(layer: str, role: str, value: Value) -> Iterator[Held]:
    """A constant behind Q/DQ, or behind DQ alone where it is codes already."""
    reads = producer(value)
    if reads is None or reads.op_type != DQ or reads.inputs[0] is None:
        return
    before, held = producer(reads.inputs[0]), _held(layer, role, reads)
    values = array(before.inputs[0] if before else reads.inputs[0])
    if held and values is not None:
        yield held._replace(values=values if before else None)


def _held(layer: str, role: str, node: Node) -> Held | None:
    """The grid of a Q or DQ whose scale and zero point are constants."""
    if len(node.inputs) < 3:
        return None
    scale, zero_point = array(node.inputs[1]), array(node.inputs[2])
    if scale is None or zero_point is None:
        return None
    return Held(layer, role, scale, zero_point, attribute(node, "axis", 1))


def _entry(held: Held) -> Json:
    limits = np.iinfo(held.zero_point.dtype)
    scale, zero = held.scale.astype(np.float64), held.zero_point.astype(np.int64)
    document = {
        "qtype": QTYPES[held.zero_point.dtype.name],
        "quantizer": _scheme(held),
        "rounding": "rtne",
        "max_value": ((limits.max - zero) * scale).tolist(),
        "min_value": ((limits.min - zero) * scale).tolist(),
    }
    if document["quantizer"] == FIXED:
        return {**document, "fl": int(-np.log2(scale))}
    return {**document, "scale": scale.tolist(), "zero_point": zero.tolist()}


def _scheme(held: Held) -> str:
    """A scale of 2^-fl around 0 is fixed point; several scales are those of channels."""
    if held.scale.ndim:
        return "perchannel_symmetric_affine"
    is_signed = held.zero_point.dtype.kind == "i" and not held.zero_point
    return FIXED if is_signed and np.frexp(held.scale)[0] == 0.5 else "asymmetric_affine"


def _lost(cosine: float) -> float:
    """1 where it is no number."""
    return 1.0 if math.isnan(cosine) else min(max(1.0 - cosine, 0.0), 1.0)


def _cosine(held: Held, values: np.ndarray) -> float:
    """Between these values and what their grid holds of them."""
    return cosine(values, on_grid(values, Grid(held.scale, held.zero_point), held.axis))
