"""Describes an artifact of any type as data: facts, interface and one table."""

from __future__ import annotations

import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from npumake.bundle.archive import DAMAGE, Bundle, is_secure
from npumake.compilers.handover import Handover
from npumake.compilers.handover_package import LIST
from npumake.data.samples import Samples
from npumake.debug.describe_documents import DOCUMENTS, ArtifactDescription, loaded, notes_of
from npumake.debug.handover_report import AS_WRITTEN, handover_parts
from npumake.digest import Json
from npumake.errors import CacheError, GraphError
from npumake.frontends.tflite.flatbuffer import MalformedError
from npumake.frontends.tflite.schema import TFLiteTensor, read_network
from npumake.graph import Graph, Node, Value, annotations_of, array, is_float, parse
from npumake.graph.qdq import grid_of
from npumake.late import when_used
from npumake.project.files import model_bytes, refuse_long
from npumake.quant.calibration.statistics import Statistics

with when_used("npumake.bundle.certificates", "npumake.bundle.secure"):  # only for secure files
    from npumake.bundle import certificates, secure


def describe(path: Path) -> ArtifactDescription:
    """The description of the artifact at `path`. Raises PipelineError for any other file."""
    if path.is_dir():
        return _handover(path)
    refuse_long(path)
    for of_suffix in DESCRIBERS.get(path.suffix, ()):
        description = of_suffix(path)
        if description is not None:
            return description
    suffixes = ", ".join(sorted(DESCRIBERS))
    raise GraphError("not an artifact", str(path), f"an artifact is one of {suffixes}")


def _graph(path: Path) -> ArtifactDescription:
    graph = parse(model_bytes(path), path.name)
    constants = [array(value) for value in graph.values().values()]
    weights = sum(values.nbytes for values in constants if values is not None)
    types = Counter(node.op_type for node in graph.nodes())
    return ArtifactDescription(
        "graph",
        {
            "opset": graph.opset,
            "nodes": len(graph.nodes()),
            "weight bytes": weights,
            "operators": dict(sorted(types.items())),
            **notes_of(annotations_of(graph)),
        },
        tuple(_signature(value) for value in graph.inputs),
        tuple(_signature(value) for value in graph.outputs),
        ("Node", "Type", "Shape", "DataType", "Scale", "Zero point"),
        tuple(_node_row(node) for node in graph.nodes()),
    )


def _node_row(node: Node) -> tuple[Json, ...]:
    value = node.outputs[0]
    shape = [] if value.shape is None else [str(dim) for dim in value.shape]
    scale, zero_point = map(_summary, grid_of(node) or (None, None))
    return (node.name, node.op_type, "x".join(shape), _type(value), scale, zero_point)


def _summary(values: np.ndarray | None) -> Json:
    """One number, or the range of an array."""
    if values is None:
        return None
    low, high = values.min(), values.max()
    return low.item() if low == high else f"{low:.6g}..{high:.6g}"


def _signature(value: Value) -> str:
    shape = [] if value.shape is None else [str(dim) for dim in value.shape]
    return f"{value.name}: {_type(value)}[{', '.join(shape)}]"


def _type(value: Value) -> str:
    if is_float(value):
        return "float32"
    return "unknown" if value.dtype is None else str(value.dtype.numpy())


def _secure(path: Path) -> ArtifactDescription | None:
    """The contents of the seal. Its signature is not verified here."""
    with path.open("rb") as file:
        if not is_secure(file):
            return None
    seal = secure.seal_of(model_bytes(path), path.name)
    signer, policies = seal.signer, seal.document["security"]
    return ArtifactDescription(
        "secure model",
        {
            "cipher": seal.cipher or "none, only signed",
            "signed by": certificates.called(signer.subject),
            "issued by": certificates.called(signer.issuer),
            "checked": "no; --vendor-certificate FILE verifies the signature",
            "valid": f"{signer.not_valid_before_utc:%F} to {signer.not_valid_after_utc:%F}",
        },
        columns=("Role", "Tensor", "Security"),
        rows=tuple(
            (role, name, policy) for role in policies for name, policy in policies[role].items()
        ),
    )


def describe_bundle(bundle: Bundle) -> ArtifactDescription:
    program = bundle.program
    rows = []
    for step in program.instructions:
        output = program.tensors[step.outputs[0]]
        weights = sum(values.nbytes for values in step.constants.values())
        shape = "x".join(str(dim) for dim in output.shape)
        rows.append(
            (step.name, step.op, shape, output.dtype, output.scale, output.zero_point, weights)
        )

    def interface(names: tuple[str, ...]) -> tuple[str, ...]:
        tensors = [(name, program.tensors[name]) for name in names]
        return tuple(f"{name}: {t.dtype}{list(t.shape)}" for name, t in tensors)

    return ArtifactDescription(
        "bundle",
        {
            "target": bundle.target,
            "instructions": len(program.instructions),
            "weight bytes": sum(row[-1] for row in rows),
            **({"custom operators": ", ".join(bundle.code)} if bundle.code else {}),
            "provenance": dict(bundle.provenance),
        },
        interface(program.inputs),
        interface(program.outputs),
        ("Instruction", "Kernel", "Shape", "DataType", "Scale", "Zero point", "Bytes"),
        tuple(rows),
    )


def _tflite(path: Path) -> ArtifactDescription:
    """One row per operator, with the name of its output."""
    try:
        network = read_network(model_bytes(path))
    except MalformedError as error:
        raise GraphError(f"not a readable TFLite model: {error}", path.name) from error
    rows = []
    for operator in network.operators:
        output = operator.output
        weights = sum(
            operand.values.nbytes
            for operand in operator.inputs
            if operand is not None and operand.values is not None
        )
        shape = "x".join(map(str, output.shape))
        rows.append((output.name, operator.type, shape, output.dtype, weights))

    def interface(tensors: tuple[TFLiteTensor, ...]) -> tuple[str, ...]:
        return tuple(f"{tensor.name}: {tensor.dtype}{list(tensor.shape)}" for tensor in tensors)

    return ArtifactDescription(
        "tflite",
        {"operators": len(rows), "weight bytes": sum(row[-1] for row in rows)},
        interface(network.inputs),
        interface(network.outputs),
        ("Tensor", "Operator", "Shape", "DataType", "Bytes"),
        tuple(rows),
    )


def _samples(path: Path) -> ArtifactDescription | None:
    samples = loaded(Samples, path)
    if samples is None or not samples.names:
        return None
    first = samples.read(0)
    rows = tuple(
        (name, str(values.dtype), "x".join(str(dim) for dim in values.shape))
        for name, values in first.items()
    )
    facts = {"samples": len(samples), "first": samples.names[0], "last": samples.names[-1]}
    return ArtifactDescription("samples", facts, columns=("Input", "DataType", "Shape"), rows=rows)


def _statistics(path: Path) -> ArtifactDescription:
    tensors = Statistics.load(path).tensors
    rows = tuple(
        (name, histogram.low, histogram.high, histogram.count, f"2^{histogram.exponent}")
        for name, histogram in tensors.items()
    )
    columns = ("Tensor", "Min", "Max", "Values", "Bin width")
    return ArtifactDescription("statistics", {"tensors": len(tensors)}, columns=columns, rows=rows)


def _handover(path: Path) -> ArtifactDescription:
    """Only files in its list; output of a vendor's tool in the same folder is left out."""
    parts = handover_parts(path)
    files, size = (sum(column) for column in zip(*(part[1:3] for part in parts), strict=True))
    changed = sum(part.files for part in parts if part.state != AS_WRITTEN)
    facts = {"files": files, "content bytes": size, "not as written": changed}
    return ArtifactDescription(
        "hand-over", facts, columns=("Part", "Files", "Bytes", "State"), rows=tuple(parts)
    )


def _archive(path: Path) -> ArtifactDescription | None:
    """A ZIP that is not a hand-over: SyNAP's listings, or a compiler's files."""
    try:
        with zipfile.ZipFile(path) as archive:
            rows = tuple((entry.filename, entry.file_size) for entry in archive.infolist())
    except DAMAGE as error:
        raise CacheError(f"not a readable ZIP: {error}", str(path)) from error
    facts = {"files": len(rows), "content bytes": sum(size for _, size in rows)}
    if any(name == LIST for name, _ in rows):
        return None
    return ArtifactDescription("archive", facts, columns=("Member", "Bytes"), rows=rows)


DESCRIBERS: dict[str, tuple[Callable[[Path], Any], ...]] = {
    Graph.suffix: (_graph,),
    ".tflite": (_tflite,),
    Handover.suffix: (_archive, _handover),
    Bundle.suffix: (_secure, lambda path: describe_bundle(Bundle.load(path))),
    Samples.suffix: (_samples, _statistics),
    ".json": DOCUMENTS,
}
