"""An LSTM in float, written out step by step; TensorFlow Lite's own has other inputs.

    i, o, f, g = split of  W x_t + R h_{t-1} + b      i, o, f through sigmoid, g through tanh
    c_t = f c_{t-1} + i g        h_t = o tanh(c_t)

x is (T, N, I), or (N, T, I) with `layout`; a direction gives (T, N, H) and the last h and c.
Source: the LSTM of ONNX, whose functions are sigmoid and tanh unless it names others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pipeline.bundle.program import Instruction
from pipeline.bundle.program import Tensor as Grid
from pipeline.compilers.clamps import refused
from pipeline.compilers.draft import Draft, plain
from pipeline.compilers.flatfile import Fields
from pipeline.graph import Node, array, attribute

MOST_STEPS = 1024
X, W, R, B, LENGTHS, HIDDEN, CELL, PEEPHOLES = range(8)
UNUSUAL = ("activations", "clip", "input_forget")


class _Cell(NamedTuple):
    """One direction: what a step is computed with. Tensors of the file by number."""

    draft: Draft
    name: str
    weight: int  # (4 H, I + H)
    bias: int  # (4 H,)
    samples: int
    size: int

    def made(self, kind: str, inputs: Sequence[int], called: str, options: Fields) -> int:
        return self.tensor(kind, inputs, (self.samples, self.size), called, options)

    def tensor(
        self, kind: str, read: Sequence[int], shape: tuple[int, ...], called: str, options: Fields
    ) -> int:
        grid = Grid(shape, "float32")
        index = self.draft.hidden_on(grid, plain(len(shape)), f"{self.name}_{called}")
        self.draft.draw(kind, read, [index], options)
        return index

    def after(self, x: int, hidden: int, cell: int, step: int) -> tuple[int, int]:
        """h and c (N, H) behind a step that reads x (N, I)."""
        inputs = self.draft.tensors[x].shape[1]
        width = inputs + self.size
        both: Fields = {0: ("i", 1)}
        read = self.tensor(
            "CONCATENATION", [x, hidden], (self.samples, width), f"{step}_read", both
        )
        weighed = [read, self.weight, self.bias]
        gates = self.tensor(
            "FULLY_CONNECTED", weighed, (self.samples, 4 * self.size), f"{step}_gates", {}
        )
        i, o, f = (self._gate(gates, number, "LOGISTIC", step) for number in range(3))
        g = self._gate(gates, 3, "TANH", step)
        kept = self.made("MUL", [f, cell], f"{step}_kept", {})
        new = self.made("MUL", [i, g], f"{step}_new", {})
        cell = self.made("ADD", [kept, new], f"{step}_cell", {})
        bent = self.made("TANH", [cell], f"{step}_bent", {})
        return self.made("MUL", [o, bent], f"{step}_hidden", {}), cell

    def _gate(self, gates: int, number: int, function: str, step: int) -> int:
        begin, end = number * self.size, (number + 1) * self.size
        spans = ([0, begin], [self.samples, end], [1, 1])
        given = [self.draft.constant(f"{self.name}_span", np.array(s, np.int32)) for s in spans]
        cut = self.made("STRIDED_SLICE", [gates, *given], f"{step}_cut_{number}", {})
        return self.made(function, [cut], f"{step}_gate_{number}", {})


def lstm(draft: Draft, step: Instruction, node: Node) -> None:
    """Raises GraphError for lengths, peepholes, other functions or computed weights."""
    given = [*node.inputs, *[None] * (8 - len(node.inputs))]
    weights = [array(given[index]) for index in (W, R)]
    unusual = [name for name in UNUSUAL if attribute(node, name)]
    if given[LENGTHS] is not None or given[PEEPHOLES] is not None or unusual:
        raise refused(step, "it has lengths, peepholes or functions of its own")
    if any(values is None for values in weights) or attribute(node, "layout", 0):
        raise refused(step, "its weights are computed, or its batch comes first")
    name, shape = step.inputs[0], draft.grid(step.inputs[0]).shape
    if shape[0] > MOST_STEPS:
        raise refused(step, f"it has {shape[0]} steps; more than {MOST_STEPS} are not written out")
    xs = _each(draft, step, draft.read(name, plain(3)), shape)
    directions = {"forward": (False,), "reverse": (True,)}.get(
        attribute(node, "direction", "forward"), (False, True)
    )
    runs = [_run(draft, node, number, xs, back) for number, back in enumerate(directions)]
    _give(draft, node, runs)


def _each(draft: Draft, step: Instruction, x: int, shape: tuple[int, ...]) -> list[int]:
    """x_t (N, I) of every t."""
    steps, samples, size = shape
    made = []
    for t in range(steps):
        spans = ([t, 0, 0], [t + 1, samples, size], [1, 1, 1])
        given = [draft.constant(f"{step.name}_at_{t}", np.array(s, np.int32)) for s in spans]
        grid = Grid((1, samples, size), "float32")
        cut = draft.hidden_on(grid, plain(3), f"{step.name}_cut_{t}")
        draft.draw("STRIDED_SLICE", [x, *given], [cut])
        row = draft.hidden_on(Grid((samples, size), "float32"), plain(2), f"{step.name}_x_{t}")
        draft.reshape(cut, row)
        made.append(row)
    return made


class _Run(NamedTuple):
    hidden: list[int]  # h_t (N, H) in the order of t
    last: int
    cell: int


def _run(draft: Draft, node: Node, number: int, xs: Sequence[int], back: bool) -> _Run:
    cell, state = _cell(draft, node, number, draft.tensors[xs[0]].shape[0])
    hidden: dict[int, int] = {}
    order = range(len(xs))
    for t in reversed(order) if back else order:
        state = cell.after(xs[t], *state, t)
        hidden[t] = state[0]
    return _Run([hidden[t] for t in order], *state)


def _cell(draft: Draft, node: Node, number: int, samples: int) -> tuple[_Cell, tuple[int, int]]:
    """Of a direction, and its h and c before the first step, (N, H) each."""
    name = f"{node.name}_{number}"
    given = [*node.inputs, *[None] * (8 - len(node.inputs))]
    w, r, b = (array(given[index]) for index in (W, R, B))
    assert w is not None
    assert r is not None
    size = r.shape[2]
    bias = np.zeros(4 * size) if b is None else b[number].reshape(2, -1).sum(0)
    weight = np.concatenate([w[number], r[number]], axis=1).astype(np.float32)
    held = draft.constant(f"{name}_weight", weight)
    cell = _Cell(
        draft, name, held, draft.constant(f"{name}_bias", bias.astype(np.float32)), samples, size
    )
    zeros = np.zeros((samples, size), np.float32)
    start = []
    for index in (HIDDEN, CELL):
        value = given[index]
        if value is None:
            start.append(draft.constant(f"{name}_zeros", zeros))
            continue
        whole, span = draft.read(str(value.name), plain(3)), [number, 0, 0]
        ends = [number + 1, samples, size]
        spans = [
            draft.constant(f"{name}_span", np.array(s, np.int32)) for s in (span, ends, [1] * 3)
        ]
        cut = cell.tensor("STRIDED_SLICE", [whole, *spans], (1, samples, size), f"cut_{index}", {})
        start.append(draft.hidden_on(Grid(zeros.shape, "float32"), plain(2), f"{name}_{index}"))
        draft.reshape(cut, start[-1])
    return cell, (start[0], start[1])


def _give(draft: Draft, node: Node, runs: Sequence[_Run]) -> None:
    """Y (T, D, N, H), Y_h and Y_c (D, N, H): rows on top of each other are the same numbers."""
    rows = [run.hidden[t] for t in range(len(runs[0].hidden)) for run in runs]
    given = (rows, [run.last for run in runs], [run.cell for run in runs])
    for value, stacked in zip(node.outputs, given, strict=False):
        if value.name:
            _stack(draft, str(value.name), stacked)


def _stack(draft: Draft, name: str, rows: Sequence[int]) -> None:
    samples, size = draft.tensors[rows[0]].shape
    whole = rows[0]
    if len(rows) > 1:
        grid = Grid((len(rows) * samples, size), "float32")
        whole = draft.hidden_on(grid, plain(2), f"{name}_rows")
        draft.draw("CONCATENATION", rows, [whole], {0: ("i", 0)})
    draft.reshape(whole, draft.make(name, plain(len(draft.grid(name).shape))))
