"""What a tensor would be, had a node before it been changed, or had it read another tensor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import replace

import numpy as np

from npumake.bundle.program import Instruction, Program
from npumake.custom.operators import Operators
from npumake.debug.dumps.evidence import Rerun
from npumake.debug.dumps.node_changes import NodeChange, node_changes
from npumake.engine.exact import ExactSession
from npumake.engine.reference import UNFIT_VALUES
from npumake.errors import GraphError

MAX_STEPS = 6  # of a chain that are changed, the last first
MAX_OTHERS = 12  # tensors that are tried as an operand

Values = Mapping[str, np.ndarray]


def chain(program: Program, tensor: str, known_tensors: Set[str]) -> Program:
    """The part of the program that computes the tensor from known ones."""
    names, steps = {tensor}, list[Instruction]()
    for step in reversed(program.instructions):
        if any(
            name in names and (name == tensor or name not in known_tensors) for name in step.outputs
        ):
            names.update(step.inputs)
            steps.append(step)
    computed = {name for step in steps for name in step.outputs}
    used = [name for step in steps for name in step.inputs]
    inputs = tuple(dict.fromkeys(name for name in (*used, tensor) if name not in computed))
    tensors = {name: program.tensors[name] for name in (*inputs, *used, *computed)}
    return Program(inputs, (tensor,), tensors, tuple(steps[::-1]))


def reruns(part: Program, values: Values, operators: Operators) -> Iterator[Rerun]:
    """The last tensor of the chain after each change of its nodes, the last node first. What a
    change leaves as it is is read from `values`."""
    for step in part.instructions[::-1][:MAX_STEPS]:
        rest = chain(part, part.outputs[0], {*values} - _behind(part, step))
        for change in node_changes(step, rest):
            result = _result(change.program, values, operators)
            if result is not None:
                yield Rerun(change.kind, change.sentence, change.figures, result)
    for change, feeds in _other_operands(part, values):
        result = _result(change.program, feeds, operators)
        if result is not None:
            yield Rerun(change.kind, change.sentence, change.figures, result)


def _behind(part: Program, step: Instruction) -> set[str]:
    """The outputs of the step, and the tensors computed from them."""
    names = set(step.outputs)
    for other in part.instructions:
        if names.intersection(other.inputs):
            names.update(other.outputs)
    return names


def _result(program: Program, values: Values, operators: Operators) -> np.ndarray | None:
    """None for a change that the kernels refuse."""
    try:
        feeds = {name: values[name] for name in program.inputs}
        return ExactSession(program, operators).run(program.outputs, feeds)[0].astype(np.float64)
    except (GraphError, ValueError, IndexError, *UNFIT_VALUES):
        return None


def _other_operands(part: Program, values: Values) -> Iterator[tuple[NodeChange, Values]]:
    """The last step with another tensor of the same shape and type as an operand."""
    if not part.instructions:
        return
    step = part.instructions[-1]
    for name in dict.fromkeys(step.inputs):
        if name not in part.inputs:
            continue
        own = values[name]
        others = [
            (other, x)
            for other, x in values.items()
            if other != name and x.shape == own.shape and x.dtype == own.dtype
        ]
        for other, x in others[-MAX_OTHERS:]:
            words = f"operands: `{step.name}` reads `{other}`, not `{name}`"
            figures = {"node": step.name, "input": name, "read": other}
            yield NodeChange("operands", words, replace(part), figures), {**values, name: x}
