"""How far float arithmetic may take a node from its exact value.

A float sum of n terms is the exact sum of terms that each changed by a relative error of at most
n u, and hardly ever by more than sqrt(n) u (Higham and Mary, "A New Approach to Probabilistic
Rounding Error Analysis", 2019). So the error is what the node does to such changes of its inputs:

    E = SAFETY * sqrt(n) u / H * max_k |f(x (1 + H s_k)) - f(x)|  +  SAFETY * u * (|f(x)| + m)

s_k are random signs, one per element; H is large enough that the rounding of the probes themselves
does not count. m is the magnitude of what a function computes on its way: 1 + |x| for a function
that is built from exp, which is near 1 where f(x) is near 0, else 0.

An input that is itself uncertain by e adds 2 * max_k |f(x + e s_k) - f(x)|.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import sqrt

import numpy as np

from npumake.graph import Node, attribute, shape

Compute = Callable[[Sequence[np.ndarray]], Sequence[np.ndarray]]
Shape = Sequence[int]

PROBES = 8
SAFETY = 8.0
RELATIVE_STEP = 2.0**-10  # H
# Functions that libraries build from exp, erf or tanh.
FROM_EXP = frozenset(
    {"Celu", "Elu", "Erf", "Gelu", "HardSwish", "Mish", "Selu", "Sigmoid", "Softplus"}
    | {"Softsign", "Swish", "Tanh", "HardSigmoid", "LogSoftmax", "LSTM", "GRU", "RNN", "Attention"}
)


def rounding_error(
    compute: Compute,
    node: Node,
    read: Sequence[np.ndarray],
    errors: Sequence[np.ndarray | None],
    rounds: bool = True,
) -> list[np.ndarray]:
    """A bound per element of each result of `compute(read)`, in its unit.

    `errors` are those of `read` (None: exact). `rounds` is whether the node itself computes in
    float.
    """
    results = [_wide(x) for x in compute(read)]
    bounds = [np.zeros(x.shape) for x in results]
    if rounds:
        unit = _unit_roundoff(read)
        spread = _largest_changes(compute, results, _scaled(read))
        factor = SAFETY * sqrt(terms(node)) * unit / RELATIVE_STEP
        passed = [SAFETY * unit * (np.abs(x) + _passed(node, read, x.shape)) for x in results]
        bounds = [factor * s + p for s, p in zip(spread, passed, strict=True)]
    if any(error is not None for error in errors):
        inherited = _largest_changes(compute, results, _shifted(read, errors))
        bounds = [b + 2 * i for b, i in zip(bounds, inherited, strict=True)]
    return bounds


def terms(node: Node) -> int:
    """The length of the node's longest sum."""
    shapes = [shape(value) for value in node.inputs if value is not None]
    output = shape(node.outputs[0])
    if not shapes:
        return 1
    if node.op_type in TERMS:
        return max(1, TERMS[node.op_type](node, shapes, output))
    longest = max(max(sizes, default=1) for sizes in shapes)  # a row, a channel axis
    return max(1, longest, _size(shapes[0]) // max(1, _size(output)))


def _size(sizes: Shape) -> int:
    return int(np.prod(sizes))


def _window(node: Node, shapes: Sequence[Shape], output: Shape) -> int:
    return _size(attribute(node, "kernel_shape"))


def _rows(node: Node, shapes: Sequence[Shape], output: Shape) -> int:
    """Normalized elements: those behind an axis."""
    return _size(shapes[0][attribute(node, "axis", -1) % len(shapes[0]) :])


def _image(node: Node, shapes: Sequence[Shape], output: Shape) -> int:
    """Normalized elements: those of an image, without the batch."""
    return _size(shapes[0][1:])


def _place(node: Node, shapes: Sequence[Shape], output: Shape) -> int:
    """Positions are computed in float: an error of n u of a position, between neighbors."""
    return max((*shapes[0], *output)) ** 2


def _steps(node: Node, shapes: Sequence[Shape], output: Shape) -> int:
    """The sums of all steps of a recurrent layer, one behind the other."""
    return _size(shapes[0][:1]) * (shapes[1][-1] + shapes[2][-1])


TERMS: Mapping[str, Callable[[Node, Sequence[Shape], Shape], int]] = {
    "AffineGrid": _place,
    "AveragePool": _window,
    "Conv": lambda node, shapes, output: _size(shapes[1][1:]),
    "ConvTranspose": lambda node, shapes, output: _size(shapes[1]) // max(1, shapes[1][1]),
    "GRU": _steps,
    "GridSample": _place,
    "GroupNormalization": _image,
    "InstanceNormalization": _image,
    "LSTM": _steps,
    "LayerNormalization": _rows,
    "MeanVarianceNormalization": lambda node, shapes, output: _size(shapes[0]),
    "RMSNormalization": _rows,
    "RNN": _steps,
    "Resize": _place,
}


def _scaled(read: Sequence[np.ndarray]) -> Iterator[list[np.ndarray]]:
    draw = np.random.default_rng(0)
    for _ in range(PROBES):
        yield [
            (x * (1 + RELATIVE_STEP * _signs(draw, x))).astype(x.dtype) if _is_real(x) else x
            for x in read
        ]


def _shifted(
    read: Sequence[np.ndarray], errors: Sequence[np.ndarray | None]
) -> Iterator[list[np.ndarray]]:
    """All errors up, all down, then random signs."""
    draw = np.random.default_rng(0)
    for probe in range(PROBES):
        moved = []
        for x, error in zip(read, errors, strict=True):
            if error is None:
                moved.append(x)
                continue
            signs = (1.0, -1.0)[probe] if probe < 2 else _signs(draw, x)
            change = error * signs
            moved.append((x + (change if _is_real(x) else np.rint(change))).astype(x.dtype))
        yield moved


def _largest_changes(
    compute: Compute, results: Sequence[np.ndarray], probes: Iterator[Sequence[np.ndarray]]
) -> list[np.ndarray]:
    largest = [np.zeros(x.shape) for x in results]
    for probe in probes:
        for at, changed in enumerate(compute(probe)):
            change = np.abs(_wide(changed) - results[at])
            largest[at] = np.fmax(largest[at], change)  # NaN minus NaN is no change
    return largest


def _passed(node: Node, read: Sequence[np.ndarray], output: Shape) -> np.ndarray | float:
    """m: the magnitude of what a function computes on its way."""
    if node.op_type not in FROM_EXP:
        return 0.0
    x = _wide(read[0])
    return 1.0 + (np.abs(x) if x.shape == tuple(output) else float(np.abs(x).max(initial=0.0)))


def _unit_roundoff(read: Sequence[np.ndarray]) -> float:
    """u of the coarsest float type that is read."""
    return max((float(np.finfo(x.dtype).eps) / 2 for x in read if _is_real(x)), default=2.0**-24)


def _signs(draw: np.random.Generator, x: np.ndarray) -> np.ndarray:
    return draw.integers(0, 2, x.shape) * 2.0 - 1.0


def _is_real(x: np.ndarray) -> bool:
    return x.dtype.kind == "f"


def _wide(x: np.ndarray) -> np.ndarray:
    return np.asarray(x).astype(np.float64)
