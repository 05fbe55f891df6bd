"""Taking away instructions at the border of a compiled program, one after the other.

At the inputs what converts or lays out, at the outputs that and the Softmax may go: what was
behind it is fed, or given, as it is. Only an instruction directly at the border goes, and at an
input only one that is all that reads it. A node that is taken away is recorded in the bundle.
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
    """The type of the node, in the vendors' words."""
    return model_of(step).nodes()[0].op_type if step.op == CPU else KINDS.get(step.op, step.op)


def removable(program: Program) -> tuple[Removable, ...]:
    """What may be taken away next, in the order of the program; a node of a CPU subgraph, too."""
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
    """The bundle less that instruction, which it remembers."""
    program, (read,), (output,) = parted(bundle.program), removal.step.inputs, removal.step.outputs
    before, behind = (read, output) if removal.side == "input" else (output, read)
    names = {before: behind}
    remaining = tuple(step for step in program.instructions if step.name != removal.step.name)
    less = replace(
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
    return replace(bundle, program=joined(less), provenance={**bundle.provenance, DELETED: deleted})


def _scales(bundle: Bundle, removal: Removable) -> dict[str, digest.Json]:
    """Of a Dequantize of sums, and of what moves such sums: the scales and their axis."""
    scale = removal.step.constants.get("scale")
    if scale is not None:
        return {"scales": scale.ravel().tolist(), "axis": int(np.argmax([*scale.shape, 0]))}
    axis, scales = channel_scales(bundle, removal.step.outputs[0])
    perm = removal.step.attributes.get("perm")
    return {"scales": list(scales), "axis": perm[axis]} if scales and perm else {}


def deleted_nodes(bundle: Bundle) -> Sequence[Mapping[str, digest.Json]]:
    """What was taken away before, in order: name, type, side, and the tensors around it; of a
    Dequantize of sums the scale of each channel."""
    nodes: Sequence[Mapping[str, digest.Json]] = bundle.provenance.get(DELETED, ())
    return nodes


def channel_scales(bundle: Bundle, sums: str) -> tuple[int, Sequence[float]]:
    """The axis and the scales of the channels of an output that is `sums`; none are known of sums
    that nobody dequantized."""
    for node in deleted_nodes(bundle):
        if "scales" in node and sums in node.get("tensors", ()):
            return int(node.get("axis", 1)), node["scales"]
    return 0, ()


def modified(
    bundle: Bundle, selections: Sequence[tuple[str, str]]
) -> tuple[Bundle, list[Removable]]:
    """Less what is wished, in this order: ("node", its name) or ("type", all of that type, also
    those that come to be at the border). Raises GraphError for a node that is not there."""
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
