"""Implements `compile.remove_types` and `compile.remove_nodes` on a compiled program.

As in the vendors' tools, removal follows quantization and repeats until no selected node is at the
border. Nodes that cannot be removed stay, and a note names them. Only the kinds of
npumake.runtime.border are removable; none of them has weights.

A node has several names: its own, as `npumake modify` lists it, and those of the tensors it
converts.

    conv_dequantized                 the Dequantize of that name
    conv, X, X_HzCalibration         the Dequantize behind that node or tensor
    X_HzQuantize, X_HzDequantize     the Quantize or Dequantize of that tensor
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from npumake.bundle.archive import Bundle
from npumake.bundle.program import Instruction, Program, Tensor
from npumake.engine.subgraphs import joined, parted
from npumake.errors import GraphError
from npumake.runtime.border import (
    AT_INPUTS,
    AT_OUTPUTS,
    KINDS,
    Removable,
    deleted_nodes,
    kind_of,
    removable,
    without,
)

SUFFIXES = ("_HzCalibration", "_HzDequantize", "_HzQuantize", "_dequantized", "_quantized")
CONVERTERS = ("Quantize", "Dequantize")
KEPT_NODES = "kept_nodes"  # key of the provenance: a note for each node that stays


def stripped(bundle: Bundle, types: Sequence[str], nodes: Sequence[str]) -> Bundle:
    """The bundle without the removable ones of these types and nodes; notes name the others."""
    whole, served = parted(bundle.program), set[str]()
    while pair := next(_selected(bundle.program, types, nodes), None):
        removal, selection = pair
        served.add(selection)
        bundle = without(bundle, removal)
    deleted_names = {str(node["name"]) for node in deleted_nodes(bundle)}
    vain = [
        name
        for name in nodes
        if name not in served and not deleted_names & _steps_called(whole, name)
    ]
    notes = [
        *(_no_type(bundle.program, kind) for kind in types if kind not in served),
        *(_no_node(bundle.program, name) for name in vain),
    ]
    record = {KEPT_NODES: notes} if notes else {}
    return replace(bundle, provenance={**bundle.provenance, **record})


def kept_notes(bundle: Bundle) -> Sequence[str]:
    notes: Sequence[str] = bundle.provenance.get(KEPT_NODES, ())
    return notes


def restored(bundle: Bundle, program: Program) -> Bundle:
    """The bundle with its removed nodes put back from `program`.

    Raises GraphError if the program lacks one of them."""
    full, stripped, deleted = parted(program), parted(bundle.program), deleted_nodes(bundle)
    if not deleted:
        return bundle
    steps = {step.name: step for step in full.instructions}
    sides: dict[str, list[Instruction]] = {"input": [], "output": []}
    for node in deleted:
        name = str(node.get("name"))
        if name not in steps:
            raise _no_such(name)
        sides["input" if node.get("side") == "input" else "output"].append(steps[name])
    whole = replace(
        stripped,
        inputs=full.inputs,
        outputs=full.outputs,
        tensors={**full.tensors, **_inner(stripped)},
        instructions=(*sides["input"], *stripped.instructions, *reversed(sides["output"])),
    )
    return replace(bundle, program=joined(whole))


def alike(program: Program, bundle: Bundle) -> Program:
    """`program` without the nodes that were removed from `bundle`. Raises GraphError if one of
    them is not at its border."""
    stripped = replace(bundle, program=program, provenance={})
    for node in deleted_nodes(bundle):
        name = str(node.get("name"))
        removal = next(
            (candidate for candidate in removable(stripped.program) if candidate.step.name == name),
            None,
        )
        if removal is None:
            raise _no_such(name)
        stripped = without(stripped, removal)
    return stripped.program


def _no_such(name: str) -> GraphError:
    message = f"the graph has no `{name}` at its border, which was deleted from the bundle"
    return GraphError(message, hint="is this the graph of the bundle?")


def _selected(
    program: Program, types: Sequence[str], nodes: Sequence[str]
) -> Iterator[tuple[Removable, str]]:
    """The nodes that are removable now, each with the type or name that selects it."""
    candidates, whole = removable(program), parted(program)

    def _hides(candidate: Removable, kind: str) -> bool:
        """Whether the picture's Quantize stands in front of the only node of this kind; pixels
        are codes already, so the Quantize is removable first."""
        if (
            candidate.kind != "Quantize"
            or kind not in AT_INPUTS
            or not _is_of_pixels(program, candidate.step)
        ):
            return False
        readers = [step for step in whole.instructions if candidate.step.outputs[0] in step.inputs]
        return len(readers) == 1 and kind_of(readers[0]) == kind

    for kind in types:
        yield from (
            (candidate, kind)
            for candidate in candidates
            if candidate.kind == kind or _hides(candidate, kind)
        )
    for name in nodes:
        called = _steps_called(whole, name)
        yield from ((candidate, name) for candidate in candidates if candidate.step.name in called)


def _is_of_pixels(program: Program, step: Instruction) -> bool:
    codes = program.tensors[step.outputs[0]]
    return (codes.scale, codes.zero_point) == (1.0, 0)


def _steps_called(program: Program, name: str) -> set[str]:
    """The step of exactly that name, else the conversions of the node or tensor it names."""
    steps = {step.name: step for step in program.instructions}
    if name in steps and kind_of(steps[name]) in AT_INPUTS | AT_OUTPUTS:
        return {name}
    bases = {name, *(name.removesuffix(suffix) for suffix in SUFFIXES)}
    makers = {output: step for step in program.instructions for output in step.outputs}
    return {
        step.name
        for step in program.instructions
        if KINDS.get(step.op) in CONVERTERS and not bases.isdisjoint(_names_of(step, makers))
    }


def _names_of(step: Instruction, makers: Mapping[str, Instruction]) -> set[str]:
    """The names of a conversion: its tensors and, for a Dequantize, the nodes that compute its
    codes, across data movement."""
    names = {*step.inputs, *step.outputs}
    maker = makers.get(step.inputs[0]) if KINDS.get(step.op) == "Dequantize" else None
    while maker is not None:
        names |= {maker.name, *maker.origin, *maker.outputs}
        moves = KINDS.get(maker.op) in ("Reshape", "Transpose")
        maker = makers.get(maker.inputs[0]) if moves else None
    return names


def _inner(program: Program) -> Mapping[str, Tensor]:
    names = (name for step in program.instructions for name in step.outputs)
    return {name: program.tensors[name] for name in names}


def _no_type(program: Program, kind: str) -> str:
    inside = [step.name for step in parted(program).instructions if kind_of(step) == kind]
    message = f"no {kind} can be removed from the border of the compiled model"
    return f"{message}: `{inside[0]}` is inside it" if inside else f"{message}: there is none"


def _no_node(program: Program, name: str) -> str:
    whole = parted(program)
    matches = [s for s in whole.instructions if name in {s.name, *s.origin}]
    listed = ", ".join(f"`{candidate.step.name}`" for candidate in removable(program)) or "none"
    why = "it computes" if matches else "the compiled model has no node of that name"
    if matches and kind_of(matches[0]) in AT_INPUTS | AT_OUTPUTS:
        why = "it is not at the border, or not on a single path"
    return f"`{name}` is not removed: {why}; removable now: {listed}"
