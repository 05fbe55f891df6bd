"""Facts of an artifact by section and name, so that two artifacts can be compared line by line.

nodes     operator, shape and type of each node       scales    and zero points, per tensor
weights   digest of each node's constants             cosines   of each node, to the float model
units     where each node runs                        ranges    calibrated, per tensor
scores    figures of each artifact, larger is better  gates     met or not
size      bytes                                       latency   estimate or lower bound, in ms
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from npumake import digest
from npumake.bundle.archive import Bundle
from npumake.debug.compared import Comparison
from npumake.debug.compiled_check import CompiledCheck
from npumake.debug.describe import describe
from npumake.digest import Json
from npumake.errors import GraphError
from npumake.evaluate.figures import EvaluationResult, Figures, figures_in
from npumake.evaluate.verdict import Verdict
from npumake.graph import Graph, Node, Value, array, parse, producer
from npumake.graph.qdq import DEQUANTIZE, before_qdq, grid_of, is_qdq
from npumake.perf.latency import Latency, bundle_latency, vela_latency
from npumake.project.files import model_bytes, refuse_long
from npumake.quant.search.recipe import Recipe
from npumake.targets.reader import known_targets, read_target

Section = Mapping[str, Json]
Facts = Mapping[str, Section]
DIGEST_DIGITS = 12  # digits of a digest
CONTENT = "content"  # differs if any byte does
BIAS = "INT32"  # its grid follows from input and weight


def facts(path: Path) -> Facts:
    """The facts of the artifact at `path`; for other files size and digest. Raises PipelineError
    for a damaged artifact."""
    refuse_long(path)
    return {
        "size": {"bytes": path.stat().st_size},
        **READERS.get(path.suffix, _other)(path),
        CONTENT: {"sha256": digest.of_file(path)[:DIGEST_DIGITS]},
    }


def _graph(path: Path) -> Facts:
    graph = parse(model_bytes(path), path.name)
    real = [node for node in graph.nodes() if not is_qdq(node)]
    grids = [
        (_tensor(node.inputs[0]), *(grid_of(node) or (None, None)))
        for node in graph.nodes(DEQUANTIZE)
        if node.inputs[0] is not None and str(node.inputs[0].dtype) != BIAS
    ]
    return {
        "nodes": {str(node.name): _computed(node) for node in real},
        **_grids(grids),
        "weights": _weights((str(node.name), map(_constant, node.inputs)) for node in real),
    }


def _tensor(codes: Value) -> str:
    """The name of the tensor behind quantized values."""
    maker = producer(codes)
    source = maker.inputs[0] if is_qdq(maker) else None
    return str((source or codes).name)


def _constant(value: Value | None) -> np.ndarray | None:
    """The constant array, looking through Q/DQ; None for a computed value."""
    return None if value is None else array(before_qdq(value))


def _computed(node: Node) -> str:
    output = node.outputs[0]
    shape = "x".join(map(str, output.shape or ()))
    kind = "" if output.dtype is None else str(output.dtype.numpy())
    return " ".join(filter(None, (node.op_type, shape, kind)))


def _grids(grids: Iterable[Sequence[Any]]) -> Facts:
    """Facts of (tensor, scale, zero point); the extremes of per-channel scales."""
    scales: dict[str, Json] = {}
    zeros: dict[str, Json] = {}
    for name, scale, *zero_point in grids:
        if scale is None:
            continue
        ends = {"least": scale.min(), "largest": scale.max()}
        many = {f"{name} ({end} of {scale.size})": _short(x) for end, x in ends.items()}
        scales |= many if scale.size > 1 else {name: _short(scale.item())}
        if zero_point and zero_point[0] is not None and zero_point[0].size == 1:
            zeros[name] = zero_point[0].item()
    return {"scales": scales, "zero points": zeros}


def _weights(constants: Iterable[tuple[str, Iterable[np.ndarray | None]]]) -> Section:
    digests = {}
    for name, arrays in constants:
        present = [values for values in arrays if values is not None]
        if present:
            data = b"".join(np.ascontiguousarray(values).tobytes() for values in present)
            digests[name] = digest.of_bytes(data)[:DIGEST_DIGITS]
    return digests


def _bundle(path: Path) -> Facts:
    bundle = Bundle.load(path)
    program = bundle.program
    steps = {step.name: (step, program.tensors[step.outputs[0]]) for step in program.instructions}
    grids = [
        (name, np.array(tensor.scale), np.array(tensor.zero_point))
        for name, tensor in program.tensors.items()
        if tensor.scale is not None
    ]
    return {
        "nodes": {
            name: f"{step.op} {'x'.join(map(str, tensor.shape))} {tensor.dtype}"
            for name, (step, tensor) in steps.items()
        },
        **_grids(grids),
        "weights": _weights((name, step.constants.values()) for name, (step, _) in steps.items()),
        **_latency_facts(_latency_of(bundle)),
    }


def _latency_of(bundle: Bundle) -> Latency | None:
    """The latency; None for a bundle of an unknown target."""
    if bundle.target not in known_targets():
        return None
    return bundle_latency(bundle, read_target(bundle.target))


def _latency_facts(latency: Latency | None) -> Facts:
    """A lower bound has its own name, so it is not compared with an estimate."""
    if latency is None:
        return {}
    named = "milliseconds, compute bound only" if latency.is_bound else "milliseconds"
    return {"latency": {named: float(f"{latency.milliseconds:.6g}")}}


def _flat(path: Path) -> Facts:
    rows = describe(path).rows
    latency = vela_latency(model_bytes(path), path.name)
    nodes = {str(row[0]): " ".join(map(str, row[1:])) for row in rows}
    return {"nodes": nodes, **_latency_facts(latency)}


def _json(path: Path) -> Facts:
    """The facts of a JSON artifact, recognized by its keys."""
    try:
        document = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise GraphError(f"not JSON: {error}", path.name) from None
    keys = set(document) if isinstance(document, dict) else set()
    return next((read(path) for key, read in DOCUMENTS.items() if key in keys), {})


def _comparison(path: Path) -> Facts:
    comparison = Comparison.load(path)
    return {
        "cosines": {
            **{row.node: row.cosine for row in comparison.rows},
            **{f"output {output.name}": output.cosine for output in comparison.outputs},
        },
        "units": {row.node: row.on for row in comparison.rows},
    }


def _recipe(path: Path) -> Facts:
    recipe = Recipe.load(path)
    ends = {name: zip(("low", "high"), pair, strict=True) for name, pair in recipe.ranges.items()}
    return {
        "recipe": {
            "method": recipe.method,
            "symmetric": recipe.symmetric,
            "keeps": [*recipe.switches],
        },
        "ranges": {f"{name} {end}": _short(x) for name, pair in ends.items() for end, x in pair},
    }


def _scores(rows: Iterable[Figures]) -> Facts:
    lines = [(f"{row.artifact} {name}", x) for row in rows for name, x in row.by_name.items()]
    return {"scores": dict(lines)}


def _gates(path: Path) -> Facts:
    gates = Verdict.load(path).gates
    return {"gates": {f"gate {gate.index}": "met" if gate.met else gate.what for gate in gates}}


def _check(path: Path) -> Facts:
    check = CompiledCheck.load(path)
    return {"cosines": {f"{output.name}, compiled": output.cosine for output in check.outputs}}


def _other(path: Path) -> Facts:
    return {}


def _short(value: float) -> float:
    return float(f"{value:.6g}")


READERS: Mapping[str, Callable[[Path], Facts]] = {
    Graph.suffix: _graph,
    Bundle.suffix: _bundle,
    ".tflite": _flat,
    Comparison.suffix: _json,
}
# By a distinguishing key, tried in this order.
DOCUMENTS: Mapping[str, Callable[[Path], Facts]] = {
    "graph": _other,  # findings derive from the other artifacts
    "ranges": _recipe,
    "check": _check,
    "outputs": _comparison,
    "by_name": lambda path: _scores([figures_in(json.loads(path.read_bytes()))]),
    "rows": lambda path: _scores(EvaluationResult.load(path).rows),
    "gates": _gates,
}
