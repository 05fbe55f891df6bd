"""One step of an LSTM, GRU or RNN as products, sums and functions, with gates in ONNX's order.

x is W x_t + b, which is computed for all steps at once; h and c are the previous state.

    LSTM    i, o, f, g of  x + R h        c' = f c + i g        h' = o tanh(c')
    GRU     z, r of  x + R h              n = tanh(x_n + R_n (r h))
            or, with linear_before_reset  n = tanh(x_n + r (R_n h + b_n))
            h' = n + z (h - n)
    RNN     h' = tanh(x + R h)

Without an initial state the first step omits the products with it. The functions default to sigmoid
and tanh.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from npumake.graph import Value
from npumake.passes.writing import Writing


class RecurrentWeights(NamedTuple):
    """The weights R (G H, H) of one direction with G gates. `behind` (H,) is the bias of R h that a
    GRU resets; None otherwise."""

    recurrent: np.ndarray
    behind: np.ndarray | None

    @property
    def size(self) -> int:
        return self.recurrent.shape[1]


class RecurrentState(NamedTuple):
    """h and c (N, H); None before the first step without an initial state."""

    hidden: Value | None
    cell: Value | None = None


Step = Callable[
    [Value, RecurrentState, str], RecurrentState
]  # x (N, G H), the previous state, a name → the next state


def _lstm(write: Writing, weights: RecurrentWeights, functions: Sequence[str]) -> Step:
    size, (opening, bending, last) = weights.size, functions
    recurrent = write.constant(weights.recurrent.T, "R")

    def step(x: Value, state: RecurrentState, name: str) -> RecurrentState:
        gates = _summed(write, x, state.hidden, recurrent, name)
        doors = write.cut(gates, 1, 0, 3 * size, f"{name}_iof")
        opened = write.insert(opening, [doors], f"{name}_s")
        fresh = write.cut(gates, 1, 3 * size, 4 * size, f"{name}_g")
        g = write.insert(bending, [fresh], f"{name}_t")
        i, o, f = (
            write.cut(opened, 1, k * size, (k + 1) * size, f"{name}_{'iof'[k]}") for k in range(3)
        )
        cell = write.insert("Mul", [i, g], f"{name}_new")
        if state.cell is not None:
            remembered = write.insert("Mul", [f, state.cell], f"{name}_kept")
            cell = write.insert("Add", [remembered, cell], f"{name}_c")
        bent = write.insert(last, [cell], f"{name}_bent")
        return RecurrentState(write.insert("Mul", [o, bent], f"{name}_h"), cell)

    return step


def _gru(write: Writing, weights: RecurrentWeights, functions: Sequence[str]) -> Step:
    size, (opening, bending) = weights.size, functions
    recurrent = write.constant(weights.recurrent[: 2 * size].T, "R_zr")
    again = _reset(write, weights)

    def step(x: Value, state: RecurrentState, name: str) -> RecurrentState:
        doors = write.cut(x, 1, 0, 2 * size, f"{name}_zr")
        gates = _summed(write, doors, state.hidden, recurrent, name)
        opened = write.insert(opening, [gates], f"{name}_s")
        z, r = (write.cut(opened, 1, k * size, (k + 1) * size, f"{name}_{'zr'[k]}") for k in (0, 1))
        fresh = write.cut(x, 1, 2 * size, 3 * size, f"{name}_n")
        if (read := again(r, state.hidden, name)) is not None:
            fresh = write.insert("Add", [fresh, read], f"{name}_fresh")
        new = write.insert(bending, [fresh], f"{name}_t")
        if state.hidden is None:
            remembered = write.insert("Mul", [z, new], f"{name}_kept")
            return RecurrentState(write.insert("Sub", [new, remembered], f"{name}_h"))
        apart = write.insert("Sub", [state.hidden, new], f"{name}_apart")
        remembered = write.insert("Mul", [z, apart], f"{name}_kept")
        return RecurrentState(write.insert("Add", [new, remembered], f"{name}_h"))

    return step


def _reset(
    write: Writing, weights: RecurrentWeights
) -> Callable[[Value, Value | None, str], Value | None]:
    """The GRU's R_n h, reset by the gate r."""
    recurrent = write.constant(weights.recurrent[2 * weights.size :].T, "R_n")
    behind = None if weights.behind is None else write.constant(weights.behind, "b_n")

    def before(r: Value, hidden: Value | None, name: str) -> Value | None:
        if hidden is None:
            return None
        left = write.insert("Mul", [r, hidden], f"{name}_left")
        return write.insert("MatMul", [left, recurrent], f"{name}_Rrh")

    def after(r: Value, hidden: Value | None, name: str) -> Value | None:
        assert behind is not None
        if hidden is None:
            return write.insert("Mul", [r, behind], f"{name}_left")
        read = write.insert("Gemm", [hidden, recurrent, behind], f"{name}_Rnh")
        return write.insert("Mul", [r, read], f"{name}_left")

    return before if behind is None else after


def _rnn(write: Writing, weights: RecurrentWeights, functions: Sequence[str]) -> Step:
    recurrent = write.constant(weights.recurrent.T, "R")

    def step(x: Value, state: RecurrentState, name: str) -> RecurrentState:
        summed = _summed(write, x, state.hidden, recurrent, name)
        return RecurrentState(write.insert(functions[0], [summed], f"{name}_h"))

    return step


def _summed(write: Writing, x: Value, hidden: Value | None, recurrent: Value, name: str) -> Value:
    if hidden is None:
        return x
    read = write.insert("MatMul", [hidden, recurrent], f"{name}_Rh")
    return write.insert("Add", [x, read], f"{name}_gates")


class RecurrentKind(NamedTuple):
    gates: int
    functions: tuple[str, ...]  # defaults
    step: Callable[[Writing, RecurrentWeights, Sequence[str]], Step]


KINDS: Mapping[str, RecurrentKind] = {
    "GRU": RecurrentKind(3, ("Sigmoid", "Tanh"), _gru),
    "LSTM": RecurrentKind(4, ("Sigmoid", "Tanh", "Tanh"), _lstm),
    "RNN": RecurrentKind(1, ("Tanh",), _rnn),
}
