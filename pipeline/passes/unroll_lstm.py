"""An LSTM as the products, sums and functions of each of its steps, for a unit that has no LSTM.

    i, o, f = sigmoid, g = tanh of  W x_t + b + R h_{t-1}
    c_t = f c_{t-1} + i g        h_t = o tanh(c_t)

W x_t + b of all steps is one Gemm. Without a state before the first step, that step has neither
R h nor f c. x is (T, N, I); the outputs are (T, D, N, H), (D, N, H) and (D, N, H). Directions
are written out one after the other. Source: the LSTM of ONNX, which orders the gates i, o, f, g.

Not in PASSES: a target asks for it. A unit computes it in integers, each step on grids of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pipeline.graph import Graph, Node, Value, array, attribute, open_dimensions, shape

MOST_STEPS = 256
X, W, R, B, LENGTHS, HIDDEN, CELL, PEEPHOLES = range(8)
UNUSUAL = ("activations", "clip", "input_forget", "layout")
DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}


def unroll_lstm(graph: Graph) -> int:
    found = [node for node in graph.nodes("LSTM") if _is_plain(node)]
    for node in found:
        _Unrolling(graph, node).rewrite()
    return len(found)


def _given(node: Node, index: int) -> Value | None:
    return node.inputs[index] if index < len(node.inputs) else None


def _is_plain(node: Node) -> bool:
    x, bias = _given(node, X), _given(node, B)
    if x is None or open_dimensions(x) or shape(x)[0] > MOST_STEPS:
        return False
    constant = all(array(_given(node, index)) is not None for index in (W, R))
    unusual = [index for index in (LENGTHS, PEEPHOLES) if _given(node, index) is not None]
    told = [name for name in UNUSUAL if attribute(node, name)]
    return constant and not unusual and not told and (bias is None or array(bias) is not None)


class _State(NamedTuple):
    """h and c (N, H); None before the first step where nothing is given."""

    hidden: Value | None
    cell: Value | None


class _Unrolling:
    """One LSTM being written out, in front of it."""

    def __init__(self, graph: Graph, node: Node) -> None:
        self.graph, self.node = graph, node
        x = node.inputs[X]
        assert x is not None
        self.x = x
        self.steps, self.samples, self.inputs = shape(x)
        recurrent = array(_given(node, R))
        assert recurrent is not None
        self.size = recurrent.shape[2]

    def rewrite(self) -> None:
        order = DIRECTIONS[attribute(self.node, "direction", "forward")]
        runs = [self._run(number, back) for number, back in enumerate(order)]
        rows: list[Value | None] = [made[t] for t in range(self.steps) for made, _ in runs]
        ends = [state for _, state in runs]
        given = (rows, [end.hidden for end in ends], [end.cell for end in ends])
        for output, stacked, name in zip(self.node.outputs, given, ("Y", "h", "c"), strict=False):
            if output.uses() or output.is_graph_output():
                made = self._stacked(stacked, shape(output), name)
                self.graph.replace_uses(output, made)
        self.graph.remove(self.node)

    def _run(self, number: int, back: bool) -> tuple[dict[int, Value], _State]:
        """h_t by t, and the last h and c, of one direction."""
        w, r, b = (array(_given(self.node, index)) for index in (W, R, B))
        assert w is not None
        assert r is not None
        bias = np.zeros(8 * self.size, np.float32) if b is None else b[number]
        summed = bias.reshape(2, -1).sum(0)
        flat = self._shaped(self.x, (self.steps * self.samples, self.inputs), f"x_{number}")
        held = (self._constant(w[number].T, "W"), self._constant(summed, "B"))
        weighed = self._made("Gemm", [flat, *held], f"Wx_{number}")
        recurrent = self._constant(r[number].T, "R")
        state = _State(*(self._initial(index, number) for index in (HIDDEN, CELL)))
        hidden: dict[int, Value] = {}
        for t in reversed(range(self.steps)) if back else range(self.steps):
            begin = t * self.samples
            gates = weighed
            if self.steps > 1:
                gates = self._cut(weighed, 0, begin, begin + self.samples, f"{number}_{t}_Wx")
            state = self._step(gates, recurrent, state, f"{number}_{t}")
            assert state.hidden is not None
            hidden[t] = state.hidden
        return hidden, state

    def _step(self, gates: Value, recurrent: Value, state: _State, name: str) -> _State:
        if state.hidden is not None:
            read = self._made("MatMul", [state.hidden, recurrent], f"{name}_Rh")
            gates = self._made("Add", [gates, read], f"{name}_gates")
        h = self.size
        opened = self._made("Sigmoid", [self._cut(gates, 1, 0, 3 * h, f"{name}_iof")], f"{name}_s")
        g = self._made("Tanh", [self._cut(gates, 1, 3 * h, 4 * h, f"{name}_g")], f"{name}_t")
        i, o, f = (self._cut(opened, 1, k * h, k * h + h, f"{name}_{'iof'[k]}") for k in range(3))
        cell = self._made("Mul", [i, g], f"{name}_new")
        if state.cell is not None:
            kept = self._made("Mul", [f, state.cell], f"{name}_kept")
            cell = self._made("Add", [kept, cell], f"{name}_c")
        bent = self._made("Tanh", [cell], f"{name}_bent")
        return _State(self._made("Mul", [o, bent], f"{name}_h"), cell)

    def _initial(self, index: int, number: int) -> Value | None:
        value = _given(self.node, index)
        if value is None:
            return None
        name = f"{number}_initial_{index}"
        one = value
        if shape(value)[0] > 1:
            one = self._cut(value, 0, number, number + 1, f"{name}_cut")
        return self._shaped(one, (self.samples, self.size), name)

    def _stacked(self, rows: Sequence[Value | None], dims: Sequence[int], name: str) -> Value:
        whole, *others = [row for row in rows if row is not None]
        if others:
            whole = self._made("Concat", [whole, *others], f"{name}_rows", axis=0)
        return self._shaped(whole, dims, f"{name}_whole")

    def _shaped(self, value: Value, dims: Sequence[int], name: str) -> Value:
        return self._made("Reshape", [value, self._constant(np.array(dims), "shape")], name)

    def _cut(self, value: Value, axis: int, begin: int, end: int, name: str) -> Value:
        bounds = [self._constant(np.array([number]), "span") for number in (begin, end, axis)]
        return self._made("Slice", [value, *bounds], name)

    def _constant(self, values: np.ndarray, name: str) -> Value:
        return self.graph.constant(f"{self.node.name}_{name}", values)

    def _made(self, kind: str, read: Sequence[Value], name: str, axis: int | None = None) -> Value:
        called = f"{self.node.name}_{name}"
        return self.graph.insert(kind, read, called, before=self.node, axis=axis)
