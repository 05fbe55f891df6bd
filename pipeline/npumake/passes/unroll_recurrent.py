"""Unrolls an LSTM, GRU or RNN step by step, for an NPU that has none.

W x_t + b of all steps is one Gemm; the steps are those of npumake.passes.recurrent_steps. x is (T,
N, I); the outputs are (T, D, N, H), (D, N, H) and, for an LSTM, (D, N, H) again. Directions are
unrolled one after the other. Source: the ONNX operator specification.

Not in PASSES: targets request it. An NPU computes the steps in integers, each with its own scales.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from npumake.graph import Graph, Node, Value, array, attribute, open_dimensions, shape
from npumake.passes.recurrent_steps import KINDS, RecurrentState, RecurrentWeights
from npumake.passes.writing import Writing

MAX_STEPS = 256
X, W, R, B, LENGTHS, HIDDEN, CELL, PEEPHOLES = range(8)
UNUSUAL = ("activation_alpha", "activation_beta", "clip", "input_forget", "layout")
# Functions that compute the same as separate operators.
FUNCTIONS = frozenset({"HardSigmoid", "Relu", "Sigmoid", "Softplus", "Softsign", "Tanh"})
DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}


def unroll_recurrent(graph: Graph, max_steps: int = MAX_STEPS) -> int:
    """Unrolls nodes of at most this many steps, unless `hindrance` gives a reason not to."""
    nodes = [
        node for kind in KINDS for node in graph.nodes(kind) if hindrance(node, max_steps) is None
    ]
    for node in nodes:
        _Unrolling(graph, node).rewrite()
    return len(nodes)


def hindrance(node: Node, max_steps: int = MAX_STEPS) -> str | None:
    """The reason why the node cannot be unrolled, else None."""
    x, bias = _input(node, X), _input(node, B)
    if x is None or open_dimensions(x):
        return "its input has no fixed size"
    if shape(x)[0] > max_steps:
        return f"it has {shape(x)[0]} steps; more than {max_steps} are not unrolled"
    weights = [_input(node, W), _input(node, R), *([] if bias is None else [bias])]
    if any(array(value) is None for value in weights):
        return "its weights are computed"
    if any(_input(node, index) is not None for index in (LENGTHS, PEEPHOLES)):
        return "it has lengths or peepholes"
    reasons = [name for name in UNUSUAL if attribute(node, name)]
    reasons += [name for name in _functions(node) if name not in FUNCTIONS]
    return f"it has {', '.join(reasons)}" if reasons else None


def _input(node: Node, index: int) -> Value | None:
    return node.inputs[index] if index < len(node.inputs) else None


def _functions(node: Node) -> tuple[str, ...]:
    """The activation functions of all directions in order."""
    names: Sequence[str] = attribute(node, "activations", ())
    ways = len(DIRECTIONS[attribute(node, "direction", "forward")])
    return tuple(names) or KINDS[node.op_type].functions * ways


class _Unrolling:
    """One node while it is unrolled."""

    def __init__(self, graph: Graph, node: Node) -> None:
        self.graph, self.node, self.kind = graph, node, KINDS[node.op_type]
        self.write = Writing(graph, node)
        x = node.inputs[X]
        assert x is not None
        self.x = x
        self.steps, self.samples, self.inputs = shape(x)
        recurrent = array(_input(node, R))
        assert recurrent is not None
        self.size = recurrent.shape[2]

    def rewrite(self) -> None:
        order = DIRECTIONS[attribute(self.node, "direction", "forward")]
        runs = [self._run(number, back) for number, back in enumerate(order)]
        rows: list[Value | None] = [stack[t] for t in range(self.steps) for stack, _ in runs]
        ends = [state for _, state in runs]
        results = (rows, [end.hidden for end in ends], [end.cell for end in ends])
        for output, stacked, name in zip(self.node.outputs, results, ("Y", "h", "c"), strict=False):
            if output.uses() or output.is_graph_output():
                stack = self._stacked(stacked, shape(output), name)
                self.graph.replace_uses(output, stack)
        self.graph.remove(self.node)

    def _run(self, number: int, back: bool) -> tuple[dict[int, Value], RecurrentState]:
        """h_t by t, and the last state, for one direction."""
        weights, weighed = self._weights(number)
        count = len(self.kind.functions)
        functions = _functions(self.node)[number * count : (number + 1) * count]
        step = self.kind.step(self.write, weights, functions)
        state = RecurrentState(*(self._initial(index, number) for index in (HIDDEN, CELL)))
        hidden: dict[int, Value] = {}
        for t in reversed(range(self.steps)) if back else range(self.steps):
            begin, x = t * self.samples, weighed
            if self.steps > 1:
                end = begin + self.samples
                x = self.write.cut(weighed, 0, begin, end, f"{number}_{t}_Wx")
            state = step(x, state, f"{number}_{t}")
            assert state.hidden is not None
            hidden[t] = state.hidden
        return hidden, state

    def _weights(self, number: int) -> tuple[RecurrentWeights, Value]:
        """The weights of a step, and W x + b of all steps (T N, G H)."""
        w, r, b = (array(_input(self.node, index)) for index in (W, R, B))
        assert w is not None
        assert r is not None
        wide = self.kind.gates * self.size
        bias = np.zeros(2 * wide, np.float32) if b is None else b[number]
        recurrent, behind = bias[wide:].copy(), None
        if attribute(self.node, "linear_before_reset", 0):
            behind = recurrent[-self.size :].copy()
            recurrent[-self.size :] = 0.0
        flat = self.write.shaped(self.x, (self.steps * self.samples, self.inputs), f"x_{number}")
        weight = self.write.constant(w[number].T, "W")
        biases = self.write.constant(bias[:wide] + recurrent, "B")
        weighed = self.write.insert("Gemm", [flat, weight, biases], f"Wx_{number}")
        return RecurrentWeights(r[number], behind), weighed

    def _initial(self, index: int, number: int) -> Value | None:
        value = _input(self.node, index)
        if value is None:
            return None
        name, state = f"{number}_initial_{index}", value
        if shape(value)[0] > 1:
            state = self.write.cut(value, 0, number, number + 1, f"{name}_cut")
        return self.write.shaped(state, (self.samples, self.size), name)

    def _stacked(self, rows: Sequence[Value | None], dims: Sequence[int], name: str) -> Value:
        whole, *others = [row for row in rows if row is not None]
        if others:
            whole = self.write.insert("Concat", [whole, *others], f"{name}_rows", axis=0)
        return self.write.shaped(whole, dims, f"{name}_whole")
