"""Changes of one node that boards and compilers are known to make, simplest first.

A change has no free parameter: it says what the node would be, and the program is run so. The
sentence begins with the kind of cause and names the node and the figure that changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import permutations

import numpy as np

from npumake.bundle.program import Instruction, Program, Tensor
from npumake.debug.dumps.resize_changes import linear, nearest
from npumake.debug.dumps.weight_changes import other_weights
from npumake.debug.dumps.window_changes import (
    average_or_maximum,
    padded,
    replaced,
    whole_window,
    windows,
)
from npumake.digest import Json

ADDITIONS = frozenset({"add", "add_twice"})
MAX_OPERANDS = 4  # whose order is tried


@dataclass(frozen=True)
class NodeChange:
    """The program with the change; `sentence` without the kind in front."""

    kind: str
    sentence: str
    program: Program
    figures: Mapping[str, Json] = field(default_factory=dict)


def node_changes(step: Instruction, program: Program) -> Iterator[NodeChange]:
    """The changes of a step of the program."""
    for change in CHANGES:
        for kind, words, changed, figures in change(step, program):
            other = changed if isinstance(changed, Program) else _with(program, step, changed)
            sentence = f"{kind.replace('_', ' ')}: `{step.name}` {words}"
            yield NodeChange(kind, sentence, other, {"node": step.name, **figures})


def _with(program: Program, step: Instruction, other: Instruction) -> Program:
    return replace(program, instructions=replaced(program, step, (other,)))


Change = tuple[str, str, Instruction | Program, dict[str, Json]]


def _constants(step: Instruction, **changed: np.ndarray) -> Instruction:
    arrays = {
        role: np.ascontiguousarray(x, step.constants[role].dtype) for role, x in changed.items()
    }
    return replace(step, constants={**step.constants, **arrays})


def _attributes(step: Instruction, **changed: Json) -> Instruction:
    return replace(step, attributes={**step.attributes, **changed})


def _biases(step: Instruction, program: Program) -> Iterator[Change]:
    bias = step.constants.get("bias")
    if bias is None or not bias.any():
        return
    largest = float(np.abs(bias.astype(np.float64) * _factor(step)).max())
    reach = f"{largest:.4g} codes at most"
    figures: dict[str, Json] = {"largest": largest}
    yield "bias", f"lacks its bias, {reach}", _constants(step, bias=np.zeros_like(bias)), figures
    yield "bias", f"adds its bias twice, {reach}", _constants(step, bias=2 * bias), figures
    yield "bias", f"subtracts its bias, {reach}", _constants(step, bias=-bias), figures
    if bias.ndim and len(bias) > 1:
        turned = _constants(step, bias=bias[::-1])
        yield "bias", f"has its bias in reversed order, {reach}", turned, figures
        for by in (1, -1):
            rolled = _constants(step, bias=np.roll(bias, by))
            yield "bias", f"has its bias {by:+d} channels away, {reach}", rolled, figures


def _factor(step: Instruction) -> np.ndarray:
    """Codes of the output for one of the accumulator."""
    constants = step.constants
    if "factor" in constants:
        return np.asarray(constants["factor"], np.float64)
    if "mantissa" not in constants:
        return np.ones(())
    return np.asarray(constants["mantissa"] * 2.0 ** -constants["shift"].astype(np.float64))


def _clamps(step: Instruction, program: Program) -> Iterator[Change]:
    low, high = step.attributes.get("low"), step.attributes.get("high")
    grid = program.tensors[step.outputs[0]]
    if low is None or high is None or np.dtype(grid.dtype).kind == "f":
        return
    limits = np.iinfo(grid.dtype)
    ends = {"low": int(limits.min), "high": int(limits.max)}
    wide = {name: end for name, end in ends.items() if step.attributes[name] != end}
    if wide:
        words = f"lacks its clamp to codes {low} to {high}"
        yield "activation", words, _attributes(step, **wide), {"low": low, "high": high}
    for name, end in wide.items() if len(wide) == 2 else ():
        words = f"lacks its clamp at code {step.attributes[name]}"
        yield "activation", words, _attributes(step, **{name: end}), {name: step.attributes[name]}
    if low < grid.zero_point < high:
        words = f"has a Relu, a clamp at code {grid.zero_point}"
        yield "activation", words, _attributes(step, low=grid.zero_point), {"low": grid.zero_point}


def _factors(step: Instruction, program: Program) -> Iterator[Change]:
    """One factor for all channels: that of the whole tensor, or of the first channel."""
    mantissa, shift = step.constants.get("mantissa"), step.constants.get("shift")
    if mantissa is None or shift is None or "weight" not in step.constants or mantissa.ndim != 1:
        return
    scales = mantissa * 2.0 ** -shift.astype(np.float64)
    places = {"largest": int(scales.argmax()), "first": 0, "smallest": int(scales.argmin())}
    for name, at in places.items():
        other = {
            "mantissa": np.full_like(mantissa, mantissa[at]),
            "shift": np.full_like(shift, shift[at]),
        }
        words = f"has one factor for all channels, the {name}, {scales[at]:.5g}"
        if np.ptp(scales) > 0.0:
            yield "scale", words, _constants(step, **other), {"factor": float(scales[at])}


def _input_zero_points(step: Instruction, program: Program) -> Iterator[Change]:
    computed = {name for other_step in program.instructions for name in other_step.outputs}
    for name in dict.fromkeys(step.inputs):
        grid = program.tensors[name]
        if name in computed or grid.scale is None or np.dtype(grid.dtype).kind == "f":
            continue
        zero = grid.zero_point
        half = 1 << (8 * np.dtype(grid.dtype).itemsize - 1)
        for other in dict.fromkeys((0, zero + 1, zero - 1, zero + half, zero - half)):
            limits = np.iinfo(grid.dtype)
            if other == zero or not limits.min <= other <= limits.max:
                continue
            tensors = {**program.tensors, name: replace(grid, zero_point=other)}
            words = f"reads `{name}` with the zero point {other}, not {zero}"
            yield "zero_point", words, replace(program, tensors=tensors), {"zero_point": other}


def _weights(step: Instruction, program: Program) -> Iterator[Change]:
    weight = step.constants.get("weight")
    if weight is None:
        return
    for words, other in other_weights(weight):
        if other.shape == weight.shape and not np.array_equal(other, weight):
            yield "weights", f"has its weights {words}", _constants(step, weight=other), {}


def _operands(step: Instruction, program: Program) -> Iterator[Change]:
    """Operands left out, exchanged or with each other's factors."""
    mantissa = step.constants.get("mantissa")
    if step.op in ADDITIONS and mantissa is not None and len(step.inputs) == 2:
        for at, name in enumerate(step.inputs):
            left = mantissa.copy()
            left[at] = 0
            yield (
                "operands",
                f"does not add `{name}`",
                _constants(step, mantissa=left),
                {"input": name},
            )
        order = [1, 0, *range(2, len(mantissa))]
        scales = {r: step.constants[r] for r in ("mantissa", "shift") if step.constants[r].ndim}
        swapped = _constants(step, **{role: values[order] for role, values in scales.items()})
        yield "operands", "has the scales of its operands exchanged", swapped, {}
        yield "operands", "subtracts", _subtracted(step), {}
    elif step.op == "concat" and 1 < len(step.inputs) <= MAX_OPERANDS:
        yield from _joined(step)
    elif step.op in ("div", "matmul") and len(step.inputs) == 2:
        yield "operands", "has its operands exchanged", replace(step, inputs=step.inputs[::-1]), {}


def _subtracted(step: Instruction) -> Instruction:
    if "sign" in step.attributes:
        return _attributes(step, sign=-int(step.attributes["sign"]))
    mantissa = step.constants["mantissa"].copy()
    mantissa[1] = -mantissa[1]
    return _constants(step, mantissa=mantissa)


def _joined(step: Instruction) -> Iterator[Change]:
    count = len(step.inputs)
    for order in list(permutations(range(count)))[1:]:
        scales = {
            r: x[list(order)] for r, x in step.constants.items() if x.ndim and len(x) == count
        }
        inputs = tuple(step.inputs[at] for at in order)
        words = f"joins its operands in the order {', '.join(map(str, order))}"
        yield (
            "operands",
            words,
            replace(_constants(step, **scales), inputs=inputs),
            {"order": [*order]},
        )
        rescaled = _constants(step, **scales)
        if any(not np.array_equal(rescaled.constants[r], step.constants[r]) for r in scales):
            yield (
                "operands",
                "has the scales of its operands exchanged",
                rescaled,
                {"order": [*order]},
            )


def _tables(step: Instruction, program: Program) -> Iterator[Change]:
    table = step.constants.get("table")
    if table is None:
        return
    limits = np.iinfo(program.tensors[step.inputs[0]].dtype)
    codes = np.arange(limits.min, limits.max + 1)
    half = len(table) // 2
    ends = np.iinfo(table.dtype)
    if len(codes) == len(table):
        input_grid, own = (program.tensors[name] for name in (step.inputs[0], step.outputs[0]))
        yield "activation", "passes its input's codes on", _constants(step, table=codes), {}
        ratio = (input_grid.scale or 1.0) / (own.scale or 1.0)
        plain = np.rint((codes - input_grid.zero_point) * ratio) + own.zero_point
        plain = np.clip(plain, ends.min, ends.max)
        yield "activation", "passes its input's values on", _constants(step, table=plain), {}
    signs = "reads its table with unsigned codes as signed ones"
    yield "table", signs, _constants(step, table=np.roll(table, half)), {"by": half}
    for by in (1, -1):
        words = f"reads its table {by:+d} entries away"
        yield "table", words, _constants(step, table=np.roll(table, by)), {"by": by}
    yield "table", "reads its table backwards", _constants(step, table=table[::-1]), {}


def _flattened(step: Instruction, program: Program) -> Iterator[Change]:
    """A Reshape that reads channels last."""
    shape = program.tensors[step.inputs[0]].shape if step.inputs else ()
    if step.op != "reshape" or len(shape) != 4:
        return
    for perm, words in (((0, 2, 3, 1), "channels last"), ((0, 3, 1, 2), "channels first")):
        moved = f"{step.inputs[0]} in another order"
        grid = program.tensors[step.inputs[0]]
        turn = replace(
            step,
            op="transpose",
            name=moved,
            outputs=(moved,),
            constants=_identity(),
            attributes={**step.attributes, "perm": [*perm]},
        )
        tensors = {
            **program.tensors,
            moved: Tensor(tuple(shape[a] for a in perm), grid.dtype, grid.scale, grid.zero_point),
        }
        steps = replaced(program, step, (turn, replace(step, inputs=(moved,))))
        other = replace(program, instructions=steps, tensors=tensors)
        yield "layout", f"flattens {words}", other, {"order": [*perm]}


def _axes(step: Instruction, program: Program) -> Iterator[Change]:
    """Another axis of a Softmax or ArgMax."""
    axis = step.attributes.get("axis")
    shape = program.tensors[step.inputs[0]].shape if step.inputs else ()
    if axis is None or len(step.inputs) != 1:
        return
    for other in range(len(shape)):
        if other != axis % len(shape) and shape[other] > 1:
            words = f"runs over axis {other}, not over axis {axis}"
            yield "axis", words, _attributes(step, axis=other), {"axis": other}


def _identity() -> dict[str, np.ndarray]:
    return {"mantissa": np.array(1 << 30), "shift": np.array(30)}


CHANGES: tuple[Callable[[Instruction, Program], Iterator[Change]], ...] = (
    _biases,
    _clamps,
    _input_zero_points,
    padded,
    windows,
    average_or_maximum,
    whole_window,
    nearest,
    linear,
    _axes,
    _operands,
    _tables,
    _flattened,
    _factors,
    _weights,
)
