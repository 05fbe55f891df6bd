"""Removes instructions at the border of a compiled program, one at a time.

Conversions and layout changes are removable at both ends, Softmax at the outputs. The instruction
must be directly at the border; at an input it must be the only reader. The bundle's provenance
records removed nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from npumake import digest
from npumake.bundle.archive import Bundle
from npumake.bundle.program import Instruction, Program
from npumake.engine.subgraphs import CPU, joined, model_of, parted
from npumake.errors import GraphError

KINDS = {
    "dequantize": "Dequantize",
    "quantize": "Quantize",
    "reshape": "Reshape",
    "softmax": "Softmax",
    "transpose": "Transpose",
}
AT_INPUTS = frozenset({"Cast", "Quantize", "Reshape", "Transpose"})
AT_OUTPUTS = frozenset(
    {"Cast", "Dequantize", "DequantizeFilter", "Reshape", "Softmax", "Transpose"}
)
DELETED = "deleted_nodes"  # key of the provenance


class Removable(NamedTuple):
    step: Instruction
    kind: str
    side: str  # "input" or "output"


def kind_of(step: Instruction) -> str:
    """The node's type, by the vendors' name."""
    return model_of(step).nodes()[0].op_type if step.op == CPU else KINDS.get(step.op, step.op)


def removable(program: Program) -> tuple[Removable, ...]:
    """The instructions that are removable now, in program order, CPU subgraphs included."""
    return tuple(_removable(parted(program)))


def _removable(program: Program) -> Iterator[Removable]:
    reads = [name for step in program.instructions for name in step.inputs]
    for step in program.instructions:
        if len(step.inputs) != 1 or len(step.outputs) != 1:
            continue
        (read,), (output,), kind = step.inputs, step.outputs, kind_of(step)
        is_output = output in program.outputs
        if read in program.outputs or (is_output and read in program.inputs):
            continue
        if (
            kind in AT_INPUTS
            and read in program.inputs
            and reads.count(read) == 1
            and not is_output
        ):
            yield Removable(step, kind, "input")
        elif kind in AT_OUTPUTS and is_output and output not in reads:
            yield Removable(step, kind, "output")


def without(bundle: Bundle, removal: Removable) -> Bundle:
    """The bundle without that instruction; its provenance records the removal."""
    program, (read,), (output,) = parted(bundle.program), removal.step.inputs, removal.step.outputs
    before, behind = (read, output) if removal.side == "input" else (output, read)
    names = {before: behind}
    remaining = tuple(step for step in program.instructions if step.name != removal.step.name)
    stripped = replace(
        program,
        inputs=tuple(names.get(name, name) for name in program.inputs),
        outputs=tuple(names.get(name, name) for name in program.outputs),
        tensors={name: tensor for name, tensor in program.tensors.items() if name != before},
        instructions=remaining,
    )
    grids = {name: digest.plain(program.tensors[name]) for name in (read, output)}
    record = {
        "name": removal.step.name,
        "type": removal.kind,
        "side": removal.side,
        "tensors": grids,
    }
    record |= _scales(bundle, removal)
    deleted = [*deleted_nodes(bundle), record]
    return replace(
        bundle, program=joined(stripped), provenance={**bundle.provenance, DELETED: deleted}
    )


def _scales(bundle: Bundle, removal: Removable) -> dict[str, digest.Json]:
    """Scales and axis of a removed Dequantize of accumulators, or of data movement behind them."""
    scale = removal.step.constants.get("scale")
    if scale is not None:
        axis, channels = _channels(parted(bundle.program), removal.step.inputs[0], scale.shape)
        return {"scales": np.broadcast_to(scale.ravel(), channels).tolist(), "axis": axis}
    axis, scales = channel_scales(bundle, removal.step.outputs[0])
    perm = removal.step.attributes.get("perm")
    return {"scales": list(scales), "axis": perm[axis]} if scales and perm else {}


def _channels(program: Program, sums: str, scaled: Sequence[int]) -> tuple[int, int]:
    """Axis and number of the channels of accumulators. Scales of shape `scaled` show neither for
    one channel, nor for weights with one scale: the layer does."""
    makers = {output: step for step in program.instructions for output in step.outputs}
    shape, perms = program.tensors[sums].shape, list[list[int]]()
    while (maker := makers.get(sums)) is not None and maker.op == "transpose":
        perms.append(maker.attributes["perm"])
        sums = maker.inputs[0]
    if maker is None:
        axis = int(np.argmax([*scaled, 0]))
        return axis, scaled[axis] if scaled else 1
    axis = 1 if maker.op == "conv" else len(shape) - 1
    for perm in reversed(perms):
        axis = perm.index(axis)
    return axis, shape[axis]


def deleted_nodes(bundle: Bundle) -> Sequence[Mapping[str, digest.Json]]:
    """The records of removed nodes, in order: name, type, side and tensors; for a Dequantize of
    accumulators also the scale of each channel."""
    nodes: Sequence[Mapping[str, digest.Json]] = bundle.provenance.get(DELETED, ())
    return nodes


def channel_scales(bundle: Bundle, sums: str) -> tuple[int, Sequence[float]]:
    """Axis and scale of each channel of the accumulator output `sums`; no scales if the program
    never dequantized it."""
    for node in deleted_nodes(bundle):
        if "scales" in node and sums in node.get("tensors", ()):
            return int(node.get("axis", 1)), node["scales"]
    return 0, ()


def modified(
    bundle: Bundle, selections: Sequence[tuple[str, str]]
) -> tuple[Bundle, list[Removable]]:
    """The bundle without the selections, and the removed nodes, in order. A selection is ("node",
    name) or ("type", type): all of that type, repeatedly. Raises GraphError for an unknown node
    and for one that is not removable."""
    removed: list[Removable] = []
    for by, name in selections:
        matching = [
            candidate for candidate in removable(bundle.program) if _is(candidate, by, name)
        ]
        if not matching:
            raise _unremovable(bundle.program, by, name)
        while matching:
            removed.append(matching[0])
            bundle = without(bundle, matching[0])
            matching = [
                candidate for candidate in removable(bundle.program) if _is(candidate, by, name)
            ]
    return bundle, removed


def _is(candidate: Removable, by: str, name: str) -> bool:
    return name == (candidate.step.name if by == "node" else candidate.kind)


def _unremovable(program: Program, by: str, name: str) -> GraphError:
    names = [candidate.step.name for candidate in removable(program)]
    hint = f"nodes that can be deleted: {names}"
    if by == "type":
        return GraphError(f"no {name} at the border can be deleted", hint=hint)
    if name not in {step.name for step in parted(program).instructions}:
        return GraphError(f"no node `{name}`", hint=hint)
    return GraphError(f"node `{name}` is not at the border, or not on a single path", hint=hint)
